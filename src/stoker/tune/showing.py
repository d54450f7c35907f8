"""Makes what people are shown of a tuning. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stoker.records import Band, Sighting, Tried, TriedWay, TuneView, Way
from stoker.tune.choosing import Guesses, State
from stoker.tune.curve import EIGHTY
from stoker.tune.families import complexity
from stoker.tune.luck import START_SD
from stoker.tune.ratios import band_of


def make_view(
    engine: str, present: Way, state: State, guesses: Guesses, refused: Sequence[tuple[Way, str]] = ()
) -> TuneView:
    """Returns every way with what was predicted and measured of it, the simplest first."""
    ways = [_tried(way, state, guesses) for way in state.ways] + [TriedWay(way, "refused", why=why) for way, why in refused]
    return TuneView(
        service="", engine=engine, objective="single", contents=(), present=present, chosen=None, why="", starts=0,
        sweep_starts=len(state.ways), took_s=None, ways=tuple(sorted(ways, key=lambda one: complexity(one.way))),
    )  # fmt: skip


def shown_ways(view: TuneView) -> list[TriedWay]:
    """Returns the ways of which something is known; all that could be tried, where nothing is."""
    tried = [one for one in view.ways if one.tried not in ("refused", "failed")]
    return [one for one in tried if one.predicted or one.measured] or tried


def with_starts(band: Band) -> Band:
    """Returns a band as wide as a start needs it, which may be lucky itself, as those that it is guessed from."""
    if band.low_tok_s is None or band.high_tok_s is None:
        return band
    half = math.hypot(math.log(band.high_tok_s / band.tok_s), EIGHTY * math.sqrt(2) * START_SD)
    return Band(band.tok_s, band.tok_s * math.exp(-half), band.tok_s * math.exp(half))


def say_band(band: Band) -> str:
    """Returns a rate and its interval as people read them."""
    if band.low_tok_s is None or band.high_tok_s is None:
        return f"{band.tok_s:.1f}"
    return f"{band.tok_s:.1f} ({band.low_tok_s:.1f} to {band.high_tok_s:.1f})"


def _tried(way: Way, state: State, guesses: Guesses) -> TriedWay:
    found, guess = state.find(way), guesses.get(way)
    predicted = with_starts(guess.band) if guess else None
    if found is None:
        tried: Tried = "failed" if way in state.failed else "left"
        return TriedWay(way, tried, predicted)
    return TriedWay(
        way, "kept" if found.is_kept else "measured", predicted, band_of(found),
        accept_rate=_mean([one.accept_rate for one in found.seen]), accept_length=_mean(_lengths(found)),
        run_ids=tuple(one.run_id for one in found.seen if one.run_id is not None),
    )  # fmt: skip


def _lengths(found: Sighting) -> list[float | None]:
    return [one.lengths[-1] if one.lengths else None for one in found.seen]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None
