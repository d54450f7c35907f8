"""Says which tools are nearest to the truth, as far as repeats can tell them apart. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median


def nearest(errors: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns the tool whose median error is smallest, and each whose best repeat is no farther off than that one's worst.

    One name: its worst repeat is nearer to the truth than any other's best. Several: no difference is seen beyond the
    spread. Signs count for nothing; errors are grouped by tool, one a repeat, and a tool without any takes no part.
    """
    sizes = {tool: [abs(one) for one in group] for tool, group in errors.items() if group}
    if not sizes:
        return []
    first = min(sizes, key=lambda tool: median(sizes[tool]))
    others = [tool for tool in sizes if tool != first and min(sizes[tool]) <= max(sizes[first])]
    return [first, *others]
