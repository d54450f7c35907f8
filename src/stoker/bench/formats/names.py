"""Names of figures that only other tools have: their own quantities, and statistics that came without values."""

from __future__ import annotations

import re

from stoker.records import FIGURES

OTHER_FIGURES = {
    "first_chunk_prefill_tps": "prompt tokens / (the first chunk of any kind - the latency that was measured before)",
    "est_prefill_s": "from the request to its first chunk of any kind - the latency that was measured before",
}
# What another tool made of values that it does not give; such a figure is one number.
STATISTIC = re.compile(r"(mean|std|p\d+(?:\.\d+)?)_(.+)")


def split_name(name: str) -> tuple[str, str]:
    """Returns which statistic of which figure a name means: 'mean_ttft_s' is the mean of ttft_s, 'ttft_s' its median."""
    found = STATISTIC.fullmatch(name)
    return (found[1], found[2]) if found else ("median", name)


def meaning(name: str) -> str:
    """Returns what a figure is, in words."""
    statistic, figure = split_name(name)
    words = FIGURES.get(figure) or OTHER_FIGURES.get(figure, "")
    return f"{statistic} of: {words}" if statistic != "median" else words
