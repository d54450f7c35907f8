"""What was asked of an endpoint to measure it, what was seen, and what the figures rest on.

A run has cells (one load each), a cell has repeats, a repeat has requests. Figures are kept with the values that they come
from, so that two runs can be compared by a test and not by their means; runs of other tools have figures alone.
"""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

# Where a request's token count comes from, the most trustworthy first; `chunks`: nothing tells, each chunk counted as one.
CountedBy = Literal["usage", "token ids", "tokenize", "tokenizer", "chunks"]
Arrivals = Literal["closed", "constant", "poisson", "gamma", "trace"]
FigurePer = Literal["request", "repeat"]


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
    """

    prompt_tokens: int
    new_tokens: int
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
    `error` is what went wrong in words; a request with one counts in no figure but is always counted.
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


class SpeculationSeen(Record, frozen=True):
    """What speculative decoding did during a repeat, by the engine's own counters; None: the engine does not tell.

    `accept_rate` is accepted / proposed draft tokens, `accept_length` the tokens emitted per verify step (1 to k + 1).
    `accept_rate_by_position[i]` is the share of verify steps that accepted the draft token at place i.
    `source` names the counters, or the replies' field.
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


class BenchRepeat(Record, frozen=True):
    """One repeat of a cell: `took_s` from the first request sent to the last token of the last one."""

    began_at: float
    took_s: float
    requests: tuple[RequestSeen, ...]
    speculation: SpeculationSeen | None = None
    machine: MachineSeen | None = None


class BenchFigure(Record, frozen=True):
    """One measured quantity of a cell with the values it comes from; its unit is in its name.

    `low` and `high` are the bootstrap interval of the median, at `level`; None where there are too few values for one.
    """

    name: str
    per: FigurePer
    values: tuple[float, ...]
    median: float
    spread: float | None
    low: float | None
    high: float | None
    level: float = 0.95


class CellResult(Record, frozen=True):
    """A cell and what was measured of it; `repeats` is empty where another tool measured it, or where they are not kept.

    `counted_by`: what token counts rest on. `warnings`: what makes its figures doubtful; `errors`: what failed, how often.
    """

    cell: BenchCell
    figures: tuple[BenchFigure, ...]
    counted_by: tuple[str, ...]
    asked: int
    failed: int
    errors: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    speculation: SpeculationSeen | None = None
    machine: MachineSeen | None = None
    repeats: tuple[BenchRepeat, ...] = ()


class BenchSubject(Record, frozen=True):
    """What was measured; None is unknown. `plan_id` is the plan's digest, `flags` the engine's words, `machine` its name."""

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
