"""What was asked of an endpoint to measure it, what was seen, and what the figures rest on.

A run has cells (one load each), a cell has repeats, a repeat has requests. Figures are kept with the values that they come
from, so that two runs can be compared by a test and not by their means; runs of other tools have figures alone.
"""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

# Where a request's token count comes from, the most trustworthy first. `length`: it ended because it had as many tokens as
# were asked for; `chunks`: nothing tells, and each chunk was counted as one.
CountedBy = Literal["usage", "token ids", "length", "tokenize", "tokenizer", "chunks"]
Arrivals = Literal["closed", "constant", "poisson", "gamma", "trace"]
FigurePer = Literal["request", "repeat"]
# Why no further repeat was measured: `runs` were asked for, all intervals are as narrow as asked (`precision`), the `budget`
# of time is over, somebody interrupted, or it failed so often that more would tell nothing.
Ended = Literal["runs", "precision", "budget", "interrupted", "failed"]

# Every figure that a cell can have, and what it is. Times of a request count from the write of its first byte; its first
# write is all that the first read with tokens brought.
FIGURES: dict[str, str] = {
    "ttft_s": "from the request to its first content or reasoning token",
    "first_chunk_s": "from the request to its first chunk of any kind, an empty role chunk too",
    "itl_token_s": "time per token after the first write: (last token - first token) / tokens after the first write",
    "itl_chunk_s": "mean gap between chunks, which some tools call ITL: (last chunk - first chunk) / (chunks - 1)",
    "request_decode_tps": "one request's tokens per second after its first write: 1 / itl_token_s",
    "request_e2e_tps": "one request's tokens per second from its sending to its last token",
    "request_peak_tps": "the most tokens of one request within any one second",
    "prefill_tps": "prompt tokens that were not cached / ttft_s",
    "e2e_s": "from the request to its last token",
    "total_decode_tps": "tokens after the first writes of all requests of a repeat / (its last token - its first token)",
    "total_e2e_tps": "all tokens of a repeat / (its last token - its first request)",
    "total_peak_tps": "the most tokens of all requests within any one second",
    "total_prefill_tps": "uncached prompt tokens of a repeat / (the last request's first token - the first request)",
    "requests_per_s": "requests that were answered whole / the time of the repeat",
    "goodput_per_s": "requests within the limits that were set (SLO) / the time of the repeat",
    "goodput_share": "requests within the limits that were set (SLO) / requests asked, failed ones too",
    "accept_rate": "accepted / proposed draft tokens",
    "accept_length": "tokens emitted per verify step",
}


class BenchLoad(Record, frozen=True):
    """How requests come: `closed` keeps `concurrency` under way; the others come at `rate_per_s`, whatever is under way.

    `burstiness` is gamma's shape: 1 is Poisson, less comes in bursts.
    """

    arrivals: Arrivals = "closed"
    concurrency: int | None = None
    rate_per_s: float | None = None
    burstiness: float | None = None


class BenchCell(Record, frozen=True):
    """One load: what each request of it asks, in tokens of the server's own tokenizer, and how they come.

    `depth_tokens` stand before the prompt, as a conversation's past. `content` is code, prose, chat, or a file's name.
    `new_tokens` is None where a published table does not say it.
    """

    prompt_tokens: int
    new_tokens: int | None
    depth_tokens: int
    load: BenchLoad
    content: str
    shares_prefix: bool = False
    turns: int = 1


class TokensRead(Record, frozen=True):
    """Tokens that came with one read of the socket, `at_s` after the request was sent; None: nobody knows how many."""

    at_s: float
    tokens: int | None
    chunks: int


class RequestSeen(Record, frozen=True):
    """One request. Times are seconds since it was sent, itself `sent_at_s` after its repeat began; None: it never came.

    `first_chunk_s` is a chunk of any kind, an empty role chunk too; `ttft_s` the first content or reasoning token.
    `error` is what went wrong in words; a request with one counts in no figure but is always counted. `due_at_s` is when it
    was to be sent, where that was planned. `finish` is the server's reason for its end. `is_split_known` is False where the
    tokens of a write are estimated by its share of the text.
    """

    sent_at_s: float
    first_chunk_s: float | None
    ttft_s: float | None
    last_token_s: float | None
    done_s: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    first_write_tokens: int | None
    chunks: int
    counted_by: CountedBy
    status: int | None = None
    error: str = ""
    writes: tuple[TokensRead, ...] = ()
    due_at_s: float | None = None
    turn: int = 0
    finish: str | None = None
    is_split_known: bool = True


class SpeculationSeen(Record, frozen=True):
    """What speculative decoding did, by the engine's own counters or its replies; None: the engine does not tell.

    `accept_rate` is accepted / proposed draft tokens, `accept_length` the tokens emitted per verify step (1 to k + 1).
    `accept_rate_by_position[i]` is the share of verify steps that accepted the draft token at place i.
    `source` names the counters, or the replies' field; "by position N more replies": rate and positions are of those alone.
    """

    source: str
    draft_tokens: int | None
    accepted_tokens: int | None
    verify_steps: int | None
    accept_rate: float | None
    accept_length: float | None
    accept_rate_by_position: tuple[float, ...] | None = None


class MachineSeen(Record, frozen=True):
    """The machine during a repeat; None: it does not tell. Pressure is the share of time that tasks waited for memory.

    `engine_cores` and `client_cores` are processor seconds per second; `throttled` says why, where it was.
    """

    available_low_bytes: int | None
    memory_pressure: float | None
    power_mean_w: float | None
    gpu_clock_low_hz: float | None
    temperature_high_c: float | None
    engine_cores: float | None
    client_cores: float | None
    throttled: str = ""


class ClientSeen(Record, frozen=True):
    """What the measuring itself cost; None: it cannot be told here.

    `stamps`: `kernel` where the kernel noted when data came, so that a late reader changes no time; `clock` where we did.
    `busy` is the share of time in which the client was not waiting; the lags are how late it read what had come, and sent
    what was due.
    """

    stamps: Literal["kernel", "clock"]
    cores: float
    busy: float
    read_lag_mean_s: float | None = None
    read_lag_worst_s: float | None = None
    send_lag_worst_s: float | None = None
    reconnected: int = 0


class BenchRepeat(Record, frozen=True):
    """One repeat of a cell: `took_s` from the first request sent to the last token of the last one."""

    began_at: float
    took_s: float
    requests: tuple[RequestSeen, ...]
    speculation: SpeculationSeen | None = None
    machine: MachineSeen | None = None
    client: ClientSeen | None = None


class BenchFigure(Record, frozen=True):
    """One measured quantity of a cell with the values it comes from; its name is one of FIGURES, its unit in it.

    `spread` is the distance between the quartiles. `low` and `high` are the bootstrap interval of the median over the
    repeats, at `level`; None where there are too few of them for one.
    """

    name: str
    per: FigurePer
    values: tuple[float, ...]
    median: float
    spread: float | None
    low: float | None
    high: float | None
    level: float = 0.95


class BenchSlo(Record, frozen=True):
    """Limits that a good request keeps; None: no such limit."""

    ttft_s: float | None = None
    itl_token_s: float | None = None
    e2e_s: float | None = None


class SeriesPoint(Record, frozen=True):
    """A stretch of a long cell, from `at_s` after its begin for `span_s`: medians of the requests that ended in it."""

    at_s: float
    span_s: float
    answered: int
    failed: int
    total_tps: float
    ttft_s: float | None
    itl_token_s: float | None
    accept_length: float | None = None
    available_bytes: int | None = None
    temperature_c: float | None = None


class CellResult(Record, frozen=True):
    """A cell and what was measured of it; `repeats` is empty where another tool measured it, or where they are not kept.

    `counted_by`: what token counts rest on. `warnings`: what makes its figures doubtful; `errors`: what failed, how often.
    `warmups` are the repeats that were thrown away before; `is_whole` is False where somebody interrupted it. `asked` and
    `failed` are None where another tool does not tell.
    """

    cell: BenchCell
    figures: tuple[BenchFigure, ...]
    counted_by: tuple[str, ...]
    asked: int | None
    failed: int | None
    errors: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    speculation: SpeculationSeen | None = None
    machine: MachineSeen | None = None
    repeats: tuple[BenchRepeat, ...] = ()
    client: ClientSeen | None = None
    series: tuple[SeriesPoint, ...] = ()
    warmups: int = 0
    ended: Ended = "runs"
    is_whole: bool = True


class BenchKnee(Record, frozen=True):
    """Where more concurrency stops to pay, of cells that differ in nothing else; see docs/bench.md."""

    cell: BenchCell
    concurrency: int
    total_e2e_tps: float
    because: str


class BenchSubject(Record, frozen=True):
    """What was measured; None is unknown. `plan_id` is the plan's digest, `flags` the engine's words, `machine` its name.

    `box`: a linked box, asked through the door at `url`, so that the way over the link is part of each figure.
    """

    url: str | None
    model: str
    service: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    image_digest: str | None = None
    model_revision: str | None = None
    plan_id: str | None = None
    flags: tuple[str, ...] | None = None
    machine: str | None = None
    box: str | None = None


class BenchRun(Record, frozen=True):
    """One run of a benchmark, ours or another tool's; `id` is None until it is stored, `began_at` since the epoch."""

    id: int | None
    tool: str
    tool_version: str
    began_at: float | None
    took_s: float | None
    seed: int | None
    is_whole: bool
    subject: BenchSubject
    cells: tuple[CellResult, ...]
    words: tuple[str, ...] = ()
    note: str = ""
    slo: BenchSlo | None = None
    knees: tuple[BenchKnee, ...] = ()
