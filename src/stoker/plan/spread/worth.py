"""Whether a way over several boxes is worth it, and which one to take. Pure.

What can only be slower, for one request and for all together, even over the best link that is thought possible, is refused
where the model fits one box: two copies then give more, and nothing stops when one box does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from stoker.plan.speed.links import LinkCosts
from stoker.plan.speed.prediction import Fit
from stoker.plan.speed.ways import Load, Way, gain_of, speeds_of, total_tok_s
from stoker.records import Finding
from stoker.records.plan import SplitKind
from stoker.records.speed import WayKind, WayView

ONLY_SLOWER, NO_WAY, NO_COPY = "spread-only-slower", "spread-no-way", "spread-copy-does-not-fit"
SHARED: tuple[WayKind, ...] = ("tensor", "pipeline")


def kind_of(way: Way) -> WayKind:
    """Returns what people call a way; one that shares layers and hands on too counts as sharing them."""
    if way.tensor > 1:
        return "tensor"
    return "pipeline" if way.pipeline > 1 else "replicas" if way.copies > 1 else "one box"


def with_speeds(
    view: WayView, way: Way, load: Load, costs: LinkCosts, fit: Fit, counts: Sequence[int], fits_one: bool = True
) -> WayView:
    """Returns the way with what it should give, and, where the model fits one box, what is against it by that."""
    speeds = speeds_of(load, way, costs, fit, counts)
    one = msgspec.structs.replace(load, burst=msgspec.structs.replace(load.burst, requests=1))
    alone = total_tok_s(one, Way(), costs.usual, fit)
    gain = total_tok_s(one, way, costs.worst, fit) / alone, total_tok_s(one, way, costs.best, fit) / alone
    view = msgspec.structs.replace(view, speeds=speeds, gain=gain if view.kind in SHARED else None)
    together = [gain_of(load, way, costs, fit, count) for count in counts if count > 1]
    if fits_one and view.kind in SHARED and gain[1] <= 1 and all(best <= 1 for _, best in together):
        return msgspec.structs.replace(view, why_not=_join(view.why_not, _say_slower(gain, together)), rule=ONLY_SLOWER)
    return view


def _say_slower(gain: tuple[float, float], together: Sequence[tuple[float, float]]) -> str:
    said = f"one request gets at most {_below(gain[1])} of what it gets on one box"
    return said + "".join(f", and all together at most {_below(best)} of what copies give" for _, best in together[-1:])


def _below(ratio: float) -> str:
    return f"{math.floor(ratio * 1000) / 10:g} %"


def _join(*said: str) -> str:
    return "; ".join(one for one in said if one)


def choose_way(ways: Sequence[WayView], split: SplitKind) -> tuple[WayView | None, str, tuple[Finding, ...]]:
    """Returns the way to take and why, or what forbids all that were asked for."""
    fits_one = _is_possible(ways[0])
    if split == "replicas":
        return _copies(ways)
    asked = [one for one in ways if one.kind in SHARED and split in ("auto", one.kind)]
    possible = [one for one in asked if _is_possible(one)]
    if not possible:
        return None, "", (_no_way(asked),)
    worth = possible if not fits_one else [one for one in possible if one.rule != ONLY_SLOWER]
    if not worth:
        return None, "", (_only_slower(possible[0]),)
    best = max(worth, key=_expected)
    return best, _say_because(best, fits_one), tuple(_doubts(best, fits_one))


def _is_possible(way: WayView) -> bool:
    return way.fits is not False and (not way.why_not or way.rule == ONLY_SLOWER)


def _expected(way: WayView) -> float:
    return way.speeds[0].total.decode_tok_s if way.speeds else 0.0


def _copies(ways: Sequence[WayView]) -> tuple[WayView | None, str, tuple[Finding, ...]]:
    if _is_possible(ways[0]):
        return ways[1], "a copy on each box, as the service asks", ()
    why = ways[0].why_not or "the memory of one box is too small"
    fix = "leave `split` out, so that the boxes share one model"
    found = Finding("forbid", NO_COPY, "a copy does not fit each box", why, fix, severity="oom", standing="measured")
    return None, "", (found,)


def _no_way(asked: Sequence[WayView]) -> Finding:
    why = "; ".join(
        f"{way.kind} over {way.boxes}: {way.why_not or 'a box has not the memory for its part'}" for way in asked
    )
    fix = "name more boxes, choose a smaller quantisation, or leave `split` out"
    what = "the model cannot be spread over these boxes so"
    return Finding("forbid", NO_WAY, what, why, fix, severity="oom", standing="measured")


def _only_slower(way: WayView) -> Finding:
    return Finding(
        "forbid", ONLY_SLOWER, "the model fits one box, and spread over these it can only be slower", way.why_not,
        'leave `boxes` out, or set split = "replicas" for a copy on each', severity="slow",
    )  # fmt: skip


def _say_because(way: WayView, fits_one: bool) -> str:
    if not fits_one:
        return "the model does not fit one box"
    if way.gain is None:
        return "the boxes share it; how fast that is, is unknown here"
    return f"one request should run {way.gain[0]:.2f} to {way.gain[1]:.2f} times as fast as on one box"


def _doubts(way: WayView, fits_one: bool) -> list[Finding]:
    if not fits_one or way.gain is None or way.gain[0] >= 1:
        return []
    return [
        Finding("warn", ONLY_SLOWER, "over these boxes it may be slower than on one",
                f"{_say_because(way, fits_one)}, by what is not known of the link",
                "measure both: `stoker bench`; two copies are safer", severity="slow")
    ]  # fmt: skip
