"""How fast something should run: predictions, never measurements."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

LinkKind = Literal["rdma", "sockets", "unknown"]
WayKind = Literal["one box", "replicas", "tensor", "pipeline"]


class Prediction(Record, frozen=True):
    """Tokens a second of all requests together: expected, the interval that should hold it four times in five, the limit.

    The limit is what reading the bytes of a step once at the memory's nominal bandwidth allows.
    """

    decode_tok_s: float
    low_tok_s: float
    high_tok_s: float
    limit_tok_s: float


class RowPrediction(Record, frozen=True):
    """A row of a table and what is predicted for it; rates are None where nothing can be said, and `why` tells.

    `notes` are cells that could not be understood and were taken as unknown, by line and column.
    """

    line: int
    model: str
    decode_tok_s: float | None = None
    low_tok_s: float | None = None
    high_tok_s: float | None = None
    limit_tok_s: float | None = None
    why: str = ""
    notes: tuple[str, ...] = ()


class RowsView(Record, frozen=True):
    """The predictions for a table; `interval` is the share of rows that low and high should hold."""

    rows: tuple[RowPrediction, ...]
    interval: float = 0.8


class ReadPart(Record, frozen=True):
    """What a decoding step reads of one part, in bytes."""

    name: str
    read_bytes: float


class SpentPart(Record, frozen=True):
    """Where a step's time goes, as a share of the whole; below zero where it was faster than expected."""

    name: str
    share: float


class MeasuredView(Record, frozen=True):
    """A measured rate, as a share of the limit, and what the rest is thought to be.

    `run_id` is the kept run that it comes from, None where a person said it.
    """

    measured_tok_s: float
    of_limit: float
    rest: tuple[SpentPart, ...]
    run_id: int | None = None


class DraftingView(Record, frozen=True):
    """What drafting so many tokens should give: tokens of a verify step, and the rate."""

    method: str
    content: str
    draft_tokens: int
    accept_length: float
    prediction: Prediction


class CapacityView(Record, frozen=True):
    """What so many people would find, by a simulation.

    Rates are tokens a second of one answer while it is written, waits those for its first token. `busy` is the share of
    the time in which a machine works.
    """

    users: int
    boxes: int
    think_s: float
    tok_s: float
    slow_tok_s: float
    ttft_s: float
    slow_ttft_s: float
    total_tok_s: float
    busy: float


class SpeedAt(Record, frozen=True):
    """What so many requests get: tokens a second of each while it is written, and of all together."""

    requests: int
    each: Prediction
    total: Prediction


class WayView(Record, frozen=True):
    """One way to use the boxes: sizes, whether it can be, whether a box has the memory, and what it should give.

    `why_not` says why it cannot be or is not worth it, empty where nothing is known against it. `gain` is how much faster
    than one box a single request should be, lowest to highest, by what is not known of the link alone.
    """

    kind: WayKind
    boxes: int
    tensor: int = 1
    pipeline: int = 1
    fits: bool | None = None
    need_bytes: int | None = None
    kv_tokens: int | None = None
    speeds: tuple[SpeedAt, ...] = ()
    gain: tuple[float, float] | None = None
    why_not: str = ""
    rule: str = ""


class SpeedView(Record, frozen=True):
    """How fast one model should run on one machine.

    `expected` is None where the fit knows nothing of such a machine, and `why` tells. `is_guess`: the model's shape or its
    quantisation is not known, and what is usual for its size was taken. `ways` are those to use several machines.
    `bandwidth_source` says from where the bandwidth is known, `machine_note` why it is another machine than this one.
    `draft` is the model that drafts, where that is one of its own and known.
    """

    model: str
    machine: str
    engine: str
    quantisation: str
    requests: int
    prompt_tokens: int
    bandwidth_bytes_per_s: float
    reads: tuple[ReadPart, ...]
    limit_tok_s: float
    expected: Prediction | None
    prefill_tok_s: float | None
    is_guess: bool = False
    why: str = ""
    spent: tuple[SpentPart, ...] = ()
    measured: MeasuredView | None = None
    drafting: tuple[DraftingView, ...] = ()
    capacity: tuple[CapacityView, ...] = ()
    ways: tuple[WayView, ...] = ()
    bandwidth_source: str = ""
    machine_note: str = ""
    draft: str = ""
