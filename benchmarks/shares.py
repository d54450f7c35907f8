"""Says what is kept of a rate: a mean of pairs, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stoker.tune.ratios import LEVEL, interval


def say_share(logs: Sequence[float]) -> str:
    """Returns the mean of logarithms of ratios in percent, with the interval that holds it where three or more tell one."""
    middle, half = interval(logs, LEVEL)
    between = f" ({100 * math.exp(middle - half):.1f} to {100 * math.exp(middle + half):.1f} %)" if half else ""
    return f"{100 * math.exp(middle):.1f} %{between}"
