"""The tools, a file for each matter; each defines `TOOLS`. What a call needs is imported when it comes."""

from __future__ import annotations

import importlib
import pkgutil

from stoker.mcp.tool import Tool


def load_tools(*, may_act: bool) -> dict[str, Tool]:
    """Returns the tools by name; those that change something only where that is allowed."""
    files = sorted(found.name for found in pkgutil.iter_modules(__path__))
    tools = [tool for file in files for tool in importlib.import_module(f"{__name__}.{file}").TOOLS]
    return {tool.name: tool for tool in tools if may_act or not tool.changes}
