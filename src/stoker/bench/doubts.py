"""Says in words what makes a cell's figures doubtful; nothing known to be odd is left out, or averaged away. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stoker.records import BenchCell, CellResult, ClientSeen, RequestSeen, say_s

BUSY = 0.7  # of the time, and a client may have been too slow to keep the load up
LATE_S = 0.01  # a request sent so much later than it was due
STALLED = 0.01  # of the time, everything waited for memory
CACHED = 0.1  # of prompts that begin as no other does
BUSY_UNSTAMPED = 0.1  # where the stamps are ours, a late read is a wrong time


def doubts_of(result: CellResult, said: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the warnings of a cell; `said` are those of single answers, with how often each was."""
    whole = [one for repeat in result.repeats for one in repeat.requests if not one.error]
    texts = [text if times == 1 else f"{times} times: {text}" for text, times in said.items()]
    return (*_failures(result), *texts, *_lengths(result.cell, whole), *_counts(whole), *_client(result), *_machine(result))


def _failures(result: CellResult) -> Iterator[str]:
    if result.failed:
        yield f"{result.failed} of {result.asked} requests failed; they count in no figure but goodput"
    if not result.repeats:
        yield "nothing was measured"


def _lengths(cell: BenchCell, whole: Sequence[RequestSeen]) -> Iterator[str]:
    if cell.load.arrivals == "trace" or not whole:
        return
    yield from _prompts(cell, whole)
    short = [one.output_tokens or 0 for one in whole if (one.output_tokens or 0) < (cell.new_tokens or 0)]
    if short:
        yield f"{len(short)} of {len(whole)} answers ended by themselves, after {_range(short)} of {cell.new_tokens} tokens"


def _prompts(cell: BenchCell, whole: Sequence[RequestSeen]) -> Iterator[str]:
    wanted = cell.depth_tokens + cell.prompt_tokens
    first = [one for one in whole if one.turn == 0]
    told = [one.prompt_tokens for one in first if one.prompt_tokens is not None]
    if not told:
        yield f"nothing counts prompts: whether they were {wanted} tokens is unknown, and so is the prefill rate"
        return
    if min(told) != wanted or max(told) != wanted:
        yield f"prompts were {_range(told)} tokens by the server's count, and {wanted} were asked for"
    cached = sum(one.cached_tokens or 0 for one in first)
    if not cell.shares_prefix and cached > CACHED * sum(told):
        yield f"{100 * cached / sum(told):.0f} % of the prompts came out of a cache, though no two begin alike"


def _range(values: Sequence[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _counts(whole: Sequence[RequestSeen]) -> Iterator[str]:
    if any(one.counted_by == "chunks" for one in whole):
        yield "nothing tells how many tokens the answers had; each chunk was counted as one"
    if any(not one.is_split_known for one in whole):
        yield "how many tokens the first write had is estimated, by a tokenizer or by its share of the text"


def _client(result: CellResult) -> Iterator[str]:
    client: ClientSeen | None = result.client
    if client is None:
        return
    if client.busy > BUSY:
        yield f"the client was busy for {100 * client.busy:.0f} % of the time: what it measured may be its own limit"
    if client.stamps == "clock" and client.busy > BUSY_UNSTAMPED:
        yield "the kernel does not tell here when data came, so that the client's own delays are in the times"
    if (late := client.send_lag_worst_s) is not None and late > LATE_S:
        yield f"a request was sent {say_s(late)} after it was due"


def _machine(result: CellResult) -> Iterator[str]:
    machine = result.machine
    if machine is None:
        return
    if machine.throttled:
        yield f"the GPU was slowed down by {machine.throttled}"
    if machine.memory_pressure is not None and machine.memory_pressure > STALLED:
        yield f"for {100 * machine.memory_pressure:.1f} % of the time everything waited for memory"
