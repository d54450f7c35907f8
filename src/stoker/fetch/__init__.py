"""Fetches models from a hub: what engines need of them, resumably, verified, and with patience that has a limit."""

from __future__ import annotations

import os

# The hub's library reads this when it is imported, and would ask the public hub which agent it is run by, whatever the
# endpoint. A person who wants that can say so in the environment.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
