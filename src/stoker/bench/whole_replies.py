"""Asks some requests once more, as no stream, for what SGLang tells of drafts by position in whole replies alone.

That is needed where its streams' chunks are not its steps (`bench/steps.py`). Its counters have verify calls and what these
gave, so a mean; `return_meta_info` adds to a reply how many of its steps accepted how many drafts, and a request for it as a
stream is refused (seen in 0.5.16). They are prompts that were measured, so that EAGLE and a draft model propose the same
again: on an H100 other prompts had 7 % more tokens a step. SGLang's n-grams know what was said to these (7.7 tokens for
3.1) and learn from other answers too (4.5 for 3.0), so theirs are told as unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec

from stoker.bench.asking import is_good
from stoker.bench.exchange import Exchange, Job
from stoker.bench.player import Rules, play
from stoker.bench.repeat import Bench
from stoker.bench.speculation import make_speculation
from stoker.records import CellResult, SpeculationSeen

TELL_WHEN_WHOLE = frozenset({"sglang"})
LEAST_MORE = 4
MOST_NEW = 512  # tokens of each, some hundred steps
MOST_APART = 0.2  # of the tokens of a step; else these replies' drafts tell nothing of the measured ones'
STREAMED = ("stream", "stream_options", "return_spec_tokens_details")
COUNTS = ("spec_num_proposed_drafts", "spec_num_correct_drafts", "spec_verify_ct")
BY_ACCEPTED = "spec_correct_drafts_histogram"  # how many steps accepted 0, 1, 2 drafts and so on


def tells_when_whole(counted: SpeculationSeen | None, bench: Bench) -> bool:
    """Tells whether whole replies may say more of drafts than was counted."""
    is_less = counted is not None and counted.accept_rate_by_position is None and bool(counted.verify_steps)
    return is_less and bench.server.engine in TELL_WHEN_WHOLE


def ask_whole(bench: Bench, jobs: Sequence[Job], rules: Rules) -> SpeculationSeen | None:
    """Returns what whole replies to these requests tell of drafts together, if they do."""
    more = [Job(_as_no_stream(bench, job)) for job in jobs]
    return told_by_replies([_read_told(one) for one in play(bench.lines, more, rules).exchanges])


def with_positions(result: CellResult, told: SpeculationSeen | None) -> CellResult:
    """Returns a cell with the rate and the positions that some more replies tell; as it was, and why, where those differ."""
    counted = result.speculation
    if counted is None or told is None or counted.accept_length is None or told.accept_length is None:
        return result
    if abs(told.accept_length / counted.accept_length - 1) > MOST_APART:
        text = (
            f"what is accepted by position is unknown: it is told by {told.source} alone, whose steps had "
            f"{told.accept_length:.1f} tokens, and those measured {counted.accept_length:.1f} (n-grams learn from answers)"
        )
        return msgspec.structs.replace(result, warnings=(*result.warnings, text))
    both = msgspec.structs.replace(
        counted, source=f"{counted.source}; by position {told.source}", accept_rate=told.accept_rate,
        accept_rate_by_position=told.accept_rate_by_position,
    )  # fmt: skip
    return msgspec.structs.replace(result, speculation=both)


def _as_no_stream(bench: Bench, job: Job) -> bytes:
    body = msgspec.json.decode(job.request.partition(b"\r\n\r\n")[2])
    whole = {name: value for name, value in body.items() if name not in STREAMED} | {"return_meta_info": True}
    return bench.server.chat.origin.request("POST", "/chat/completions", msgspec.json.encode(whole))


def _read_told(exchange: Exchange) -> dict[str, Any]:
    """Returns what a reply says of itself; empty where it says nothing."""
    try:
        said = msgspec.json.decode(exchange.body()) if is_good(exchange) else {}
        found = said["choices"][0]["meta_info"]
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def told_by_replies(told: Sequence[dict[str, Any]]) -> SpeculationSeen | None:
    """Returns what replies say together; None unless each of them counts, and some step of them."""
    tables = [one.get(BY_ACCEPTED) for one in told]
    if not all(map(_is_table, tables)) or not all(map(_has_counts, told)):
        return None
    drafted, accepted, steps = (sum(one[name] for one in told) for name in COUNTS)
    if not steps:
        return None
    by_accepted = [0] * max(len(table) for table in tables if table is not None)
    for table in tables:
        for count, times in enumerate(table or ()):
            by_accepted[count] += times
    reached = list(accumulate(reversed(by_accepted[1:])))[::-1]  # a step that accepted three accepted the first and second
    by_position = tuple(times / steps for times in reached)
    source = "one more reply" if len(told) == 1 else f"{len(told)} more replies"
    return make_speculation(source, drafted, accepted, steps, by_position)


def _is_table(table: object) -> bool:
    return isinstance(table, list) and all(isinstance(one, int) for one in table)


def _has_counts(told: dict[str, Any]) -> bool:
    return all(isinstance(told.get(name), int) for name in COUNTS)
