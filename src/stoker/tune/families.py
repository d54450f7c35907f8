"""The ways to draft that an engine has for a model and its files, and the sizes that it may have. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from stoker.engines import Engine
from stoker.plan.wishes import tree_tokens
from stoker.records import Record, SpeculationKind, Way

Size = Literal["parallel", "batch_tokens", "graph_batch", "memory_share"]
Axis = Literal["draft_tokens", Size]
OFF = Way("off")
# How far a sweep goes: beyond, no published one was faster; a trained head's later guesses are seldom right.
MOST_TOKENS: dict[SpeculationKind, int] = {"draft": 8, "eagle": 6, "eagle3": 6, "mtp": 6, "ngram": 8}
SIMPLEST = (None, "off", "ngram", "mtp", "eagle", "eagle3", "draft")
# Of a further lookup length or tree only numbers far apart are tried: what lies between follows from them.
LOOKUP_TOKENS = (2, 4, 8)
# What others serve with: 5 steps by 4 or 8 with up to 32 verified tokens, the model's own one among them.
TREE_STEPS, TREE_TOPK, TREE_TOKENS = (3, 5), (2, 4, 8), (7, 15, 31)
BATCH_TOKENS = (512, 1024, 2048, 4096, 8192, 16384)
GRAPH_BATCHES = (1, 2, 4, 8, 16, 32, 64)
SHARE_STEPS = (0.05, 0.1, 0.15)  # upwards alone: less than the plan takes leaves the cache too small for what was asked
MOST_SHARE = 0.95


class Family(Record, frozen=True):
    """Ways that differ in one number alone, `axis`, the smallest first: what one of them gives tells of the others.

    `is_scouted`: nothing else tells of them, so that one of them is always tried; the others only where it may pay.
    """

    ways: tuple[Way, ...]
    axis: Axis | None = "draft_tokens"
    is_scouted: bool = True

    @property
    def kind(self) -> SpeculationKind | None:
        """How its ways draft; None where it is of sizes."""
        return self.ways[0].kind

    @property
    def name(self) -> str:
        """Returns what a person calls its ways: the kind of draft, or what is special beside it."""
        way = self.ways[0]
        if way.draft_adaptive or way.draft_topk:
            return "adaptive" if way.draft_adaptive else "trees"
        return "lookups" if way.lookup_min or way.lookup_max else way.kind or "sizes"

    def number(self, way: Way) -> float | None:
        """Returns a way's place on the axis; None where it has none."""
        found: float | None = getattr(way, self.axis) if self.axis else None
        return found


def plan_families(engine: Engine, draft_kind: SpeculationKind | None, has_draft_layers: bool) -> tuple[Family, ...]:
    """Returns all that can be tried: off, what drafts with a model's help, and n-gram lookup in what was said.

    `draft_kind` is what the draft beside the model is, None where there is none.
    """
    kind: SpeculationKind | None = draft_kind
    if kind is None and has_draft_layers and "mtp" in engine.drafting["draft_tokens"]:
        kind = "mtp"
    drafted = () if kind is None else (_chain(Way(kind), MOST_TOKENS[kind]), *_trees(engine, kind), *_adaptive(engine, kind))
    return (Family((OFF,), None), *drafted, *_lookups(engine))


def _chain(way: Way, most: int) -> Family:
    return Family(tuple(msgspec.structs.replace(way, draft_tokens=count) for count in range(1, most + 1)))


def _trees(engine: Engine, kind: SpeculationKind) -> Iterator[Family]:
    ways = tuple(
        Way(kind, tokens, draft_steps=steps, draft_topk=topk)
        for steps in TREE_STEPS for topk in TREE_TOPK for tokens in TREE_TOKENS
        if max(steps, topk) <= tokens <= tree_tokens(steps, topk)
    )  # fmt: skip
    if kind in engine.drafting.get("draft_steps", ()):
        yield Family(ways, None, is_scouted=False)


def _adaptive(engine: Engine, kind: SpeculationKind) -> Iterator[Family]:
    if kind in engine.drafting.get("draft_adaptive", ()):
        yield Family((Way(kind, draft_adaptive=True),), None, is_scouted=False)


def _lookups(engine: Engine) -> Iterator[Family]:
    """Lookup as the plan has it, and with the further lengths that make a difference for this engine."""
    own = engine.lookup_counts
    yield Family((Way("ngram"),), None) if own else _chain(Way("ngram"), MOST_TOKENS["ngram"])
    for place, (least, most) in enumerate(engine.lookups):
        way = Way("ngram", lookup_min=least, lookup_max=most)
        ways = tuple(msgspec.structs.replace(way, draft_tokens=count) for count in own or LOOKUP_TOKENS)
        yield Family(ways, is_scouted=bool(own) and place == 0)


def plan_sizes(size: Size, present: float | None, concurrency: int) -> Family:
    """Returns the values that are worth a try for a load of so many requests at once; the present one is among them."""
    if size == "parallel":  # more than there are requests change nothing
        values: Sequence[float] = [2**power for power in range(concurrency.bit_length() + 1) if 2**power < 2 * concurrency]
    elif size == "graph_batch":
        values = [batch for batch in GRAPH_BATCHES if batch < 2 * concurrency]
    elif size == "batch_tokens":
        values = BATCH_TOKENS
    else:
        values = [round((present or 0.0) + step, 2) for step in SHARE_STEPS]
        values = [share for share in values if share <= MOST_SHARE]
    every: list[float | None] = [*sorted({*values, *([] if present is None else [present])})]
    # What the engine chose by itself, and does not tell, is a way as well.
    every = every if present is not None else [None, *every]
    return Family(tuple(msgspec.structs.replace(Way(), **{size: value}) for value in every), size, is_scouted=False)


def complexity(way: Way, present: Way | None = None) -> tuple[float, ...]:
    """Returns what orders ways from the simplest to the one that needs most; a size that a service has is the simplest."""
    sizes = (way.parallel, way.batch_tokens, way.graph_batch, way.memory_share)
    return (
        SIMPLEST.index(way.kind), bool(way.kind is None and way != present), bool(way.draft_adaptive or way.draft_tiers),
        way.draft_topk or 0, way.draft_steps or 0, bool(way.lookup_min or way.lookup_max), way.lookup_min or 0,
        way.lookup_max or 0, way.draft_tokens or 0, *(size or 0 for size in sizes),
    )  # fmt: skip


def scouts(family: Family) -> tuple[Way, ...]:
    """Returns the ways that tell of all others of a family, the best scout first; the next where one does not start."""
    most = family.ways[-1].draft_tokens
    if most is None:
        return family.ways
    wanted = dict.fromkeys((most, max(1, most // 2), max(1, most // 4)))
    return tuple(msgspec.structs.replace(family.ways[-1], draft_tokens=count) for count in wanted)
