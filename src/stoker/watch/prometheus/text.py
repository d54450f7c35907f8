"""YAML as these programs read it, with a line that says who wrote it."""

from __future__ import annotations

from typing import Any

import yaml

OURS = "# Written by Stoker (`stoker install prometheus`); write your own rules into other files.\n"
WIDTH = 110


def render_yaml(tree: dict[str, Any]) -> str:
    """Returns the text of a tree, in its order."""
    return OURS + yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=WIDTH)
