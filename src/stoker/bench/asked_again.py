"""Asks some requests once more, as no stream: what SGLang tells of drafts by place, it tells in whole replies alone.

Its counters have verify calls and what these gave, so a mean; `return_meta_info` adds to a reply how many of its steps
accepted how many drafts, and a request for it as a stream is refused (seen in 0.5.16).
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
from stoker.records import SpeculationSeen

TELL_WHEN_WHOLE = frozenset({"sglang"})
MOST_AGAIN = 8
STREAMED = ("stream", "stream_options", "return_spec_tokens_details")
COUNTS = ("spec_num_proposed_drafts", "spec_num_correct_drafts", "spec_verify_ct")
BY_ACCEPTED = "spec_correct_drafts_histogram"  # how many steps accepted 0, 1, 2 drafts and so on


def with_places(counted: SpeculationSeen | None, bench: Bench, jobs: Sequence[Job], rules: Rules) -> SpeculationSeen | None:
    """Returns what was counted, with the rate and the places that whole replies tell, where the engine tells them so."""
    if counted is None or counted.accept_rate is not None or not counted.verify_steps:
        return counted
    if bench.server.engine not in TELL_WHEN_WHOLE or not jobs:
        return counted
    again = [Job(_as_no_stream(bench, job)) for job in jobs[:MOST_AGAIN]]
    told = told_by_replies([_read_told(one) for one in play(bench.lines, again, rules).exchanges])
    if told is None:
        return counted
    return msgspec.structs.replace(
        counted, source=f"{counted.source}; by place {told.source}", accept_rate=told.accept_rate,
        accept_rate_by_position=told.accept_rate_by_position,
    )  # fmt: skip


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
    if not all(isinstance(table, list) for table in tables) or not all(_has_counts(one) for one in told):
        return None
    drafted, accepted, steps = (sum(one[name] for one in told) for name in COUNTS)
    if not steps:
        return None
    by_accepted = [0] * max(len(table) for table in tables if table is not None)
    for table in tables:
        for count, times in enumerate(table or ()):
            by_accepted[count] += times
    reached = list(accumulate(reversed(by_accepted[1:])))[::-1]  # a step that accepted three accepted the first and second
    places = tuple(times / steps for times in reached)
    return make_speculation(f"{len(told)} replies that were asked once more", drafted, accepted, steps, places)


def _has_counts(told: dict[str, Any]) -> bool:
    return all(isinstance(told.get(name), int) for name in COUNTS)
