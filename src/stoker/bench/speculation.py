"""What speculative decoding did between two looks at an engine's counters, or by what its answers say. Pure.

accept_rate = accepted / proposed draft tokens; accept_length = tokens emitted per verify step, the model's own one too.
vLLM and llama.cpp count drafts, draft tokens and accepted ones; SGLang counts verify calls and generated tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stoker.bench.events import Stream
from stoker.counters import Counters
from stoker.records import SpeculationSeen

RESET = "the engine's counters went backwards, so it was started anew meanwhile: what it accepted is unknown"


def went_back(before: Counters, after: Counters) -> bool:
    """Tells whether a counter is lower than before: another process counts now."""
    grown = after.since(before)
    return before.engine != after.engine or any(value < 0 for value in grown.values())


def speculation_between(before: Counters | None, after: Counters | None) -> SpeculationSeen | None:
    """Returns what the counters tell; None where they tell nothing of speculation, or begin anew between the looks."""
    if before is None or after is None or went_back(before, after):
        return None
    grown = after.since(before)
    calls = grown.get("verify_calls_total")
    if calls:
        return SpeculationSeen(
            f"counters of {after.engine}", None, None, calls, None, grown.get("generated_tokens_total", 0) / calls
        )
    drafted, accepted, steps = (grown.get(name) for name in ("draft_tokens_total", "accepted_tokens_total", "drafts_total"))
    if drafted is None or accepted is None or steps is None or not after.totals["draft_tokens_total"]:
        return None
    if not steps:
        return SpeculationSeen(f"counters of {after.engine}", drafted, accepted, 0, None, None)
    places = _by_position(before.by_position, after.by_position, steps)
    return make_speculation(f"counters of {after.engine}", drafted, accepted, steps, places)


def make_speculation(
    source: str, drafted: int, accepted: int, steps: int | None, by_position: tuple[float, ...] | None = None
) -> SpeculationSeen:
    """Returns the figures that these counts make."""
    length = 1 + accepted / steps if steps else None
    return SpeculationSeen(source, drafted, accepted, steps, accepted / drafted if drafted else None, length, by_position)


def _by_position(before: Sequence[int], after: Sequence[int], steps: int) -> tuple[float, ...] | None:
    """Returns the share of verify steps that accepted each place; a place that was never seen before counted nothing."""
    if not after:
        return None
    known = [*before, *[0] * (len(after) - len(before))]
    return tuple((now - then) / steps for then, now in zip(known, after, strict=False))


def speculation_told(answers: Iterable[Stream]) -> SpeculationSeen | None:
    """Returns what the answers themselves tell, added up; None unless all of them tell it."""
    told = [_told(stream) for stream in answers]
    known = [one for one in told if one is not None]
    if not known or (len(known) < len(told) and known[0][0] != TIMINGS):  # llama.cpp is silent where it drafted nothing
        return None
    source = known[0][0]
    steps = [one[3] for one in known]
    total = None if None in steps else sum(one for one in steps if one is not None)
    return make_speculation(source, sum(one[1] for one in known), sum(one[2] for one in known), total)


TIMINGS = "timings"
Told = tuple[str, int, int, int | None]


def _told(stream: Stream) -> Told | None:
    """Returns (field, draft tokens, accepted, steps) of one answer, from the last chunk that has them."""
    for chunk in reversed(stream.last):
        if chunk.timings and chunk.timings.draft_n is not None:
            return TIMINGS, chunk.timings.draft_n, chunk.timings.draft_n_accepted or 0, None
        for field, part, names in FIELDS:
            said = (getattr(chunk, field) or {}).get(part)
            if isinstance(said, dict) and (found := _counts(said, names)) is not None:
                return f"{field}.{part}", *found
    return None


# vLLM's with --per-request-spec-decode-metrics, SGLang's with return_spec_tokens_details: drafted, accepted, steps.
FIELDS = (
    ("metrics", "speculative_decoding", ("num_draft_tokens", "num_accepted_draft_tokens", "num_spec_steps")),
    ("sglext", "spec_tokens_details", ("spec_num_proposed_drafts", "spec_num_correct_drafts", "spec_verify_ct")),
)


def _counts(said: dict[str, Any], names: tuple[str, str, str]) -> tuple[int, int, int | None] | None:
    drafted, accepted, steps = (said.get(name) for name in names)
    if not isinstance(drafted, int) or not isinstance(accepted, int):
        return None
    return drafted, accepted, steps if isinstance(steps, int) else None


def join_speculation(seen: Sequence[SpeculationSeen | None]) -> SpeculationSeen | None:
    """Returns what several repeats did together; None unless all of them tell, by the same source."""
    known = [one for one in seen if one is not None]
    if not known or len(known) < len(seen) or len({one.source for one in known}) > 1:
        return None
    drafted, accepted, steps = (
        _sum([getattr(one, name) for one in known]) for name in ("draft_tokens", "accepted_tokens", "verify_steps")
    )
    if drafted is not None and accepted is not None:
        return make_speculation(known[0].source, drafted, accepted, steps, _mean_by_position(known))
    length, rate = (_mean_of_steps(known, name) for name in ("accept_length", "accept_rate"))
    return SpeculationSeen(known[0].source, None, None, steps, rate, length, _mean_by_position(known))


def _mean_of_steps(known: Sequence[SpeculationSeen], name: str) -> float | None:
    """Returns the mean of a figure of all repeats, each weighed by its steps; None unless all tell it."""
    told = [(value, one.verify_steps or 0) for one in known if (value := getattr(one, name)) is not None]
    steps = sum(weight for _, weight in told)
    return sum(value * weight for value, weight in told) / steps if steps and len(told) == len(known) else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _mean_by_position(known: Sequence[SpeculationSeen]) -> tuple[float, ...] | None:
    """Returns the shares of all repeats, each weighed by its steps."""
    tables = [(one.accept_rate_by_position, one.verify_steps or 0) for one in known]
    if any(table is None for table, _ in tables) or not (steps := sum(weight for _, weight in tables)):
        return None
    places = max(len(table or ()) for table, _ in tables)
    return tuple(
        sum(table[place] * weight for table, weight in tables if table and place < len(table)) / steps
        for place in range(places)
    )
