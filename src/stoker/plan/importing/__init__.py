"""Launches that others wrote, as services of `stoker.toml`."""

from __future__ import annotations

from stoker.plan.importing.imported import Imported, render_services
from stoker.plan.importing.services import services_of

__all__ = ["Imported", "render_services", "services_of"]
