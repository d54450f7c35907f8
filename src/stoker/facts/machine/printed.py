"""Takes JSON out of what a program printed. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

BEGIN = re.compile(r"^\s*[\[{]", re.MULTILINE)


def find_json(printed: str | None) -> Any:
    """Returns the first JSON object or list that begins a line; None without one. Warnings may stand around it."""
    for found in BEGIN.finditer(printed or ""):
        try:
            return json.JSONDecoder().raw_decode((printed or "")[found.end() - 1 :])[0]
        except (ValueError, RecursionError):
            continue
    return None
