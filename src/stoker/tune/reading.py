"""Reads what a benchmark's cell tells of a way to draft. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from stoker.plan.speed.curve import rates_from_mean
from stoker.plan.speed.speculation import expected_length
from stoker.records import BenchFigure, BenchRepeat, CellResult, LengthsBy, Objective, Seen, SpeculationSeen, Way
from stoker.tune.steps import base_step_s, read_steps

# One request: tokens a second after its first write. Many: all tokens of a repeat by its time, waits for prompts among it;
# for goodput only the share of them whose requests were within their limits.
FIGURE: dict[Objective, str] = {"single": "total_decode_tps", "throughput": "total_e2e_tps", "goodput": "total_e2e_tps"}
GOOD = "goodput_share"
LEAST_SHARE = 0.01  # of a repeat without a good request, so that rates have logarithms and the faster of two misses is known


def read_cell(
    result: CellResult, way: Way, objective: Objective, run_id: int | None = None, lookup_s: float | None = None
) -> Seen | None:
    """Returns what a cell tells; None where not every request was answered, or no rate could be told.

    `lookup_s` are the seconds that looking adds to a step of this engine, None where that is not known.
    """
    rates = read_rates(result.figures, objective)
    if result.failed or not rates:
        return None
    told = result.speculation
    lengths, by = _lengths(told, way, _drafted_share(told, result.repeats)) if told else ((), "usual")
    base_s = _base_step_s(result, way, rates, lookup_s) if objective == "single" else None
    return Seen(result.cell.content, rates, lengths, by, told.accept_rate if told else None, run_id, base_s)


def read_rates(figures: Sequence[BenchFigure], objective: Objective) -> tuple[float, ...]:
    """Returns the rate of each repeat that was answered, as the objective counts it."""
    values = {one.name: one.values for one in figures}
    speeds = values.get(FIGURE[objective], ())
    shares = values.get(GOOD, ()) if objective == "goodput" else (1.0,) * len(speeds)
    return tuple(speed * max(LEAST_SHARE, share) for speed, share in zip(speeds, shares, strict=False))


def _base_step_s(result: CellResult, way: Way, speeds: Sequence[float], lookup_s: float | None) -> float | None:
    """Returns the seconds of a step as it is without drafts, of off and of a lookup; another draft adds to each step."""
    extra_s = {"off": 0.0, "ngram": lookup_s}.get(way.kind or "")
    step_s = None if extra_s is None else base_step_s(read_steps(result.repeats, speeds, drafts=way.kind != "off"))
    return None if step_s is None or extra_s is None or step_s <= extra_s else step_s - extra_s


def _drafted_share(told: SpeculationSeen | None, repeats: tuple[BenchRepeat, ...]) -> float:
    """Returns the share of all steps that had drafts: lookup finds nothing for many, which engines do not count.

    A step gives one token of the model's own, so there are as many as tokens that were not accepted drafts; the first token
    of an answer comes with its prompt.
    """
    whole = [one for repeat in repeats for one in repeat.requests if not one.error]
    tokens = sum(one.output_tokens or 0 for one in whole) - len(whole)
    if told is None or told.accepted_tokens is None or not told.verify_steps or tokens <= told.accepted_tokens:
        return 1.0
    return min(1.0, told.verify_steps / (tokens - told.accepted_tokens))


def _lengths(told: SpeculationSeen, way: Way, drafted: float) -> tuple[tuple[float, ...], LengthsBy]:
    """Returns the tokens of a mean step with 1 to N draft tokens.

    The share of steps that accept position i is the same for every N of at least i, since a chain is verified from its
    beginning: so the shares of a run with many draft tokens add up to the lengths of all with fewer.
    """
    count = way.draft_tokens
    if way.draft_steps or way.draft_adaptive or way.draft_tiers:  # no chain of one length: only the whole is known
        whole = told.accept_length
        return ((), "usual") if whole is None else ((1.0 + drafted * (whole - 1.0),), "mean")
    if told.accept_rate_by_position and count:
        shares = _levelled(told, [*told.accept_rate_by_position, *[0.0] * count][:count])
        if shares is not None:
            return tuple(1.0 + drafted * total for total in accumulate(shares)), "positions"
    if count and told.accept_rate is not None and told.draft_tokens is not None:
        return lengths_from_mean(told.accept_rate, count, drafted), "mean"
    if count and told.accept_length is not None:
        return lengths_from_mean((told.accept_length - 1) / count, count, drafted), "mean"
    return (), "usual"


def _levelled(told: SpeculationSeen, shares: list[float]) -> list[float] | None:
    """Returns the shares as they are where they are of all that was counted; else in their shape, to add up to its length.

    SGLang tells of some replies, and a length of all. None where no shares of that shape add up to it.
    """
    if told.draft_tokens is not None or told.accept_length is None:
        return shares
    wanted = max(0.0, told.accept_length - 1.0)
    level = wanted / sum(shares) if sum(shares) else 0.0
    levelled = [level * one for one in shares]
    return levelled if sum(levelled) > 0.0 and max(levelled) <= 1.0 else None


def lengths_from_mean(accept_rate: float, draft_tokens: int, drafted: float = 1.0) -> tuple[float, ...]:
    """Returns the lengths where only the mean over all positions is known: they are taken to fall as is usual."""
    rates = rates_from_mean(accept_rate, draft_tokens)
    return tuple(1.0 + drafted * (expected_length(rates[:count]) - 1.0) for count in range(1, draft_tokens + 1))
