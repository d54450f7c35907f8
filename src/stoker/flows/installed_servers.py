"""Finds the program of a package that a client looks up at each start, where it was installed for good."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from stoker.box import Box
from stoker.clients.mcp_servers import Download, without_version

NPM_LIMIT_S = 20.0
NAME = re.compile(r"(@[\w.-]+/)?[\w.-]+")


def find_installed(download: Download, box: Box) -> tuple[str, ...]:
    """Returns the words that start the installed program; empty where it is not installed."""
    for look in (_on_path, _of_npm):
        if program := look(download, box):
            return (program, *download.words)
    return ()


def _on_path(download: Download, box: Box) -> str:
    return (box.find_program(download.program) or "") if "/" not in download.program else ""


def _of_npm(download: Download, box: Box) -> str:
    """npm's packages name their programs as they like; package.json tells."""
    package = without_version(download.package)
    said = box.run(("npm", "prefix", "--global"), NPM_LIMIT_S) if download.installs[0] == "npm" else None
    if said is None or not NAME.fullmatch(package):
        return ""
    prefix = Path(said.strip().splitlines()[-1])
    programs = _programs(box.read(str(prefix / "lib/node_modules" / package / "package.json")), package)
    return next((str(place) for name in programs if os.access(place := prefix / "bin" / name, os.X_OK)), "")


def _programs(text: str | None, package: str) -> list[str]:
    try:
        told = json.loads(text or "{}").get("bin", {})
    except (ValueError, AttributeError):
        return []
    own = package.rpartition("/")[2]
    return [own] if isinstance(told, str) else sorted(told, key=lambda name: name != own) if isinstance(told, dict) else []
