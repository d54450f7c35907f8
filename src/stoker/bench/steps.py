"""Reads from streams what each verify step accepted, where every chunk is one step. Pure.

SGLang counts verify calls and no places, sends a chunk for each step, and says in each how many tokens there were until then
(`continuous_usage_stats`). Where they are nearly as many as the calls that it counted, the shares by place are those of the
very requests that were measured. Steps are joined where a client falls behind, or where one has no text, as at an
answer's end or at the beginning of a letter (1 of 206 in vLLM, tests/with_vllm/test_heads.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from stoker.bench.events import Stream
from stoker.records import SpeculationSeen

JOINED = 0.02  # of the steps, at most: so far may a share be off


def with_steps(counted: SpeculationSeen, streams: Iterable[Stream], drafts_a_step: int | None) -> SpeculationSeen:
    """Returns what was counted, with the rate and the positions that the streams tell, where they tell all steps."""
    accepted = accepted_by_steps(streams, counted.verify_steps or 0, drafts_a_step)
    if not accepted:
        return counted
    by_position = tuple(sum(one > place for one in accepted) / len(accepted) for place in range(max(accepted)))
    rate = sum(by_position) / drafts_a_step if drafts_a_step else None
    return msgspec.structs.replace(counted, accept_rate=rate, accept_rate_by_position=by_position)


def accepted_by_steps(streams: Iterable[Stream], verify_steps: int, drafts_a_step: int | None = None) -> Sequence[int]:
    """Returns how many drafts each step accepted; empty where it is not told.

    An answer's last step is left out: its end may lie within what was accepted. So is one of more than a step can have.
    """
    tables = [step_tokens(one) for one in streams]
    if not 0 <= verify_steps - sum(map(len, tables)) <= JOINED * verify_steps:
        return ()
    accepted = [tokens - 1 for table in tables for tokens in table[:-1]]
    return [one for one in accepted if drafts_a_step is None or one <= drafts_a_step]


def step_tokens(stream: Stream) -> list[int]:
    """Returns the tokens of each step of a stream behind the first token, which comes of the prompt."""
    told = [one.until_now for one in stream.texts]
    if stream.usage is not None:
        told.append(stream.usage.completion_tokens)  # its last step had no text where the end alone was in it
    known = [one for one in told if one is not None]
    if len(known) < len(told):
        return []
    return [now - before for before, now in pairwise(known) if now > before]  # a step's thoughts and words are two chunks
