"""From a wish to a plan, and from a plan to the words that start an engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from stoker.records.base import Record
from stoker.records.ranks import Part, Ray, Seat
from stoker.records.rule import Finding
from stoker.records.speed import SpeedView

SpeculationKind = Literal["auto", "off", "ngram", "draft", "eagle", "eagle3", "mtp"]
ReasoningKind = Literal["auto", "on", "off"]
SettingValue = str | int | float | bool | tuple[str | int | float | bool, ...]
SplitKind = Literal["auto", "tensor", "pipeline", "replicas"]
Pool = Literal["gpu", "host", "both"]
# From so many requests at once to so many: the tokens drafted a step. The first begins at 1, none overlap.
Tiers = tuple[tuple[int, int, int], ...]


class Wish(Record, frozen=True):
    """What a person asked for: which model to serve, and the few things they chose themselves.

    `engine` 'auto' lets the plan choose. `flags` are words for the engine by their long name without dashes; `program` is
    an engine's own command, such as a virtual environment's python; `image` the container to run it in. `claim_gib` is the
    memory it takes, where its owner knows better than a budget could. Engine 'command' is any program: it needs `program`
    or the name of a systemd `unit`, `claim_gib`, and `health` (a path that answers 200) or `ready_line` (a pattern of its
    log) instead of a model. Of the services of one `group` only one is up at a time. `filters` are the gateway's, in order;
    they are no part of the plan. `gate` names the probes that have to pass before it is READY; None lets the plan choose.
    How tokens are drafted, and the sizes of an engine, are the fields of `Way`. `boxes` are the machines over which one
    model is spread, the head first; `split` says how, and `executor` what starts the engine's processes there. A worker
    joins no head at another address than `head_address`, where its table says one.
    """

    name: str
    model: str = ""
    engine: str = "auto"
    served_name: str | None = None
    port: int | None = None
    context: int | None = None
    parallel: int | None = None
    speculation: SpeculationKind = "auto"
    draft: str | None = None
    draft_tokens: int | None = None
    draft_steps: int | None = None
    draft_topk: int | None = None
    draft_adaptive: bool | None = None
    draft_tiers: Tiers | None = None
    lookup_min: int | None = None
    lookup_max: int | None = None
    batch_tokens: int | None = None
    graph_batch: int | None = None
    reasoning: ReasoningKind = "auto"
    gpu_layers: int | None = None
    threads: int | None = None
    prompt_cache_mib: int | None = None
    server: str | None = None
    image: str | None = None
    program: tuple[str, ...] = ()
    version: str | None = None
    memory_share: float | None = None
    claim_gib: float | None = None
    flags: dict[str, SettingValue] = {}  # noqa: RUF012 - msgspec copies it
    environment: dict[str, str] = {}  # noqa: RUF012
    mounts: tuple[str, ...] = ()
    health: str | None = None
    ready_line: str | None = None
    group: str | None = None
    unit: str | None = None
    filters: tuple[str, ...] = ()
    gate: tuple[str, ...] | None = None
    boxes: tuple[str, ...] = ()
    split: SplitKind = "auto"
    executor: Literal["mp", "ray"] = "mp"
    head_address: str | None = None


class Way(Record, frozen=True):
    """One way to run a service, by the keys of its table (`kind` is `speculation`); what is None is left to the plan.

    `draft_tokens` are drafted a step. In a tree the draft runs `draft_steps` times and keeps `draft_topk` tokens of each
    branch; of all those `draft_tokens` are verified. `lookup_min` and `lookup_max` are how many of the last tokens n-gram
    lookup has to find again. `draft_adaptive` lets the engine choose the number of draft tokens by what it sees,
    `draft_tiers` by how many requests run. The sizes: `parallel` requests at once, `batch_tokens` of prompts a step,
    graphs for up to `graph_batch` requests, and the engine's `memory_share`.
    """

    kind: SpeculationKind | None = None
    draft_tokens: int | None = None
    draft_steps: int | None = None
    draft_topk: int | None = None
    draft_adaptive: bool | None = None
    draft_tiers: Tiers | None = None
    lookup_min: int | None = None
    lookup_max: int | None = None
    parallel: int | None = None
    batch_tokens: int | None = None
    graph_batch: int | None = None
    memory_share: float | None = None

    @property
    def keys(self) -> dict[str, SettingValue | Tiers]:
        """What a service's table says of it."""
        said = {name: getattr(self, name) for name in self.__struct_fields__ if getattr(self, name) is not None}
        return {"speculation" if name == "kind" else name: value for name, value in said.items()}

    @property
    def name(self) -> str:
        """As people read it: `off`, `ngram 8 after 2 to 8`, `draft 4`, `eagle3 15 in 5 steps by 4`, `parallel 16`."""
        if self.kind is None:
            said = (f"{name} {value:g}" for name, value in self.keys.items() if isinstance(value, int | float))
            return " ".join(said) or "as it is"
        return " ".join(part for part in (self.kind, *self._numbers()) if part)

    def _numbers(self) -> Iterator[str]:
        if self.draft_tokens is not None and not self.draft_tiers:
            yield str(self.draft_tokens)
        if self.draft_steps is not None:
            yield f"in {self.draft_steps} steps by {self.draft_topk}"
        elif self.draft_topk is not None:
            yield f"by {self.draft_topk}"
        if (least := self.lookup_min or self.lookup_max) is not None:
            yield f"after {least}" if self.lookup_max in (None, least) else f"after {least} to {self.lookup_max}"
        if self.draft_adaptive:
            yield "adaptive"
        yield ", ".join(f"{tokens} up to {last}" for _, last, tokens in self.draft_tiers or ())


class Setting(Record, frozen=True):
    """One setting and who chose it.

    `name` is either neutral (`context`), and the engine's file knows how it is spelled, or said in the engine's own words:
    `--flag` or `$VARIABLE`. `rule` is the rule that asked for it, where one did.
    """

    name: str
    value: SettingValue
    because: str
    rule: str = ""


class AdoptedProcess(Record, frozen=True):
    """An engine that somebody else started, told from a later one with its pid by its start time and the boot.

    `members` are it and what belonged to it when it was adopted, each with its start time. `folder` is where it was started.
    `restart`: once it has ended it may be started again by its own words. `container` is the id of that which it runs in.
    """

    pid: int
    start_ticks: int
    boot_id: str
    members: tuple[tuple[int, int], ...]
    folder: str
    restart: bool = False
    container: str | None = None


class Abilities(Record, frozen=True):
    """What a service does for its clients, by its plan: True, False, or None where that is not known.

    `tools`: calls come as such and not as text. `reasoning`: the model thinks, and its thoughts come apart from the answer.
    """

    chat: bool | None = None
    embeddings: bool | None = None
    rerank: bool | None = None
    audio: bool | None = None
    vision: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    structured_output: bool | None = None


class Plan(Record, frozen=True):
    """How one service will run: every setting with its reason, and the memory it should need.

    `plan_id` is a digest of everything that decides the launch. `port` 0 means a free one, picked at launch. `answers`:
    clients may ask it for tokens, and so does the proof; else its health is all that is asked. `unit` is systemd's;
    `adopted` is a process that was found running, and `program` then how it was called, if it may be started again.
    `image_id` is what `image` stood for when it was planned. `gate` names the probes that have to pass before it is READY.
    `kv_tokens` are the tokens that the cache will hold, and `abilities` what clients may ask for; neither decides anything
    of the launch. Of `memory_need_bytes`, `card_need_bytes` lie on a graphics card that has memory of its own; 0 where the
    need is all of the machine's memory. Of a model over several boxes the head's plan has the other ranks in `parts`, and
    theirs a `seat`; `ray` is what has to run on each of those boxes where Ray starts the engine's processes.
    """

    plan_id: str
    service: str
    model: str
    model_path: str
    revision: str
    engine: str
    server: str | None
    port: int
    settings: tuple[Setting, ...]
    memory_need_bytes: int
    memory_because: str
    engine_version: str | None = None
    image: str | None = None
    program: tuple[str, ...] = ()
    mounts: tuple[tuple[str, str], ...] = ()
    answers: bool = True
    group: str | None = None
    image_id: str | None = None
    unit: str | None = None
    adopted: AdoptedProcess | None = None
    kv_tokens: int | None = None
    abilities: Abilities = Abilities()
    gate: tuple[str, ...] = ()
    gate_because: str = ""
    card_need_bytes: int = 0
    parts: tuple[Part, ...] = ()
    seat: Seat | None = None
    ray: Ray | None = None

    @property
    def host_need_bytes(self) -> int:
        """What it needs of the machine's memory, as the kernel counts it."""
        return self.memory_need_bytes - self.card_need_bytes

    @property
    def is_rank(self) -> bool:
        """Tells whether it is one of several ranks of a model, which speak to each other over the boxes' own network."""
        return bool(self.parts) or self.seat is not None

    @property
    def has_rdma(self) -> bool:
        """Tells whether it is a rank whose link to the others is RDMA."""
        return self.parts[0].ask.link.kind == "rdma" if self.parts else self.seat is not None and self.seat.has_rdma

    @property
    def is_engine(self) -> bool:
        """Tells whether this is an engine whose file Stoker has, and no command of the user's."""
        return self.engine != "command"


class BudgetLine(Record, frozen=True):
    """One part of the memory that a plan takes, how it was counted, and how well that is known.

    On a unified-memory machine `gpu` and `host` are the same memory.
    """

    name: str
    need_bytes: int
    because: str
    pool: Pool = "gpu"


class Budget(Record, frozen=True):
    """What a plan takes of a machine's memory, and whether it fits: at all, and at this moment.

    `kept` is what no engine may have, `usable_bytes` what is left for engines when nothing else runs, `available_bytes`
    what the machine has now; None where nobody knows. `kv_tokens` are the tokens that the cache will hold, `kv_requests`
    how many full contexts that is.
    """

    lines: tuple[BudgetLine, ...]
    kept: tuple[BudgetLine, ...]
    total_bytes: int
    usable_bytes: int
    available_bytes: int | None
    fits_machine: bool
    fits_now: bool | None
    kv_tokens: int | None
    kv_requests: float | None
    unknown: tuple[str, ...] = ()


class Alternative(Record, frozen=True):
    """Another way to serve the model, and what is known of it; the best comes first.

    `decode_tok_s` is what somebody measured for one request at a time, `source` who.
    """

    engine: str
    quantisation: str
    speculation: str
    decode_tok_s: str | None
    source: str
    note: str = ""


class Report(Record, frozen=True):
    """A plan with everything that a person needs to judge it.

    `left` are choices that were left to the engine. `speed` is a prediction; None where nothing is known to predict it from.
    """

    plan: Plan
    budget: Budget | None
    engine_because: str = ""
    findings: tuple[Finding, ...] = ()
    left: tuple[Setting, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    speed: SpeedView | None = None


class LaunchSpec(Record, frozen=True):
    """The exact program to run: words and environment, never a shell line."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    health_path: str
    key_variable: str | None
    ready_line: str | None = None
    folder: str = "/"
