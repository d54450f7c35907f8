"""Says what changed from one run to another, and how sure that is: on a terminal, and on the dashboard."""

from __future__ import annotations

from stoker.bench.comparing.compare import is_more_better
from stoker.records import FigureChange

NAMES = {
    "ttft_s": "TTFT, ms", "prefill_tps": "prefill t/s", "request_decode_tps": "decode t/s each",
    "total_e2e_tps": "e2e t/s all", "total_decode_tps": "decode t/s all",
    "accept_rate": "accept rate", "accept_length": "accept length",
}  # fmt: skip
WORDS = {True: ("faster", "slower"), False: ("shorter", "longer")}  # by whether more is better; first what is better
SHARES = ("accept_rate", "accept_length", "goodput_share")


def name_figure(change: FigureChange) -> str:
    """Returns what changed, with its unit where it has one."""
    return NAMES.get(change.name, change.name)


def say_value(change: FigureChange, value: float) -> str:
    """Returns one of the two values, in the unit that `name_figure` says."""
    if change.name == "accept_rate":
        return f"{value:.0%}"
    number = value * 1000 if change.name == "ttft_s" else value
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def say_change(change: FigureChange) -> str:
    """Returns a change as a sentence: 'faster by 12 % (9 to 15)', 'no difference seen (between -3 and +2 %)'."""
    if change.verdict in ("better", "worse"):
        sign = 1 if change.ratio >= 1 else -1
        ends = (change.low or change.ratio, change.high or change.ratio)
        reach = " to ".join(_plain(end) for end in sorted(sign * _percent(end) for end in ends))
        paired = ", paired" if change.is_paired else ""
        return f"{_word(change)} by {_plain(abs(_percent(change.ratio)))} % ({reach}{paired})"
    if change.verdict == "means":
        return f"{_signed(change.ratio)} (means)"
    if change.low is None or change.high is None:
        return f"{_signed(change.ratio)}, of {change.count_a} and {change.count_b} repeats: too few to tell"
    between = f"between {_signed(change.low, '')} and {_signed(change.high)}"
    if change.verdict == "too few":
        return f"{_signed(change.ratio)} ({between}); too few repeats to tell in one cell"
    return f"no difference seen ({between})"


def _word(change: FigureChange) -> str:
    if change.name in SHARES:
        return "higher" if change.ratio > 1 else "lower"
    better, worse = WORDS[is_more_better(change.name)]
    return better if change.verdict == "better" else worse


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _plain(percent: float) -> str:
    return f"{percent:.0f}" if abs(percent) >= 10 else f"{percent:.1f}"


def _signed(ratio: float, unit: str = " %") -> str:
    percent = _percent(ratio)
    return f"{percent:+.0f}{unit}" if abs(percent) >= 10 else f"{percent:+.1f}{unit}"
