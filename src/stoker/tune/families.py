"""The ways to draft that an engine has for a model and its files. Pure."""

from __future__ import annotations

from stoker.plan.engine_choice import LLAMACPP
from stoker.records import Record, SpeculationKind, Way

OFF = Way("off")
# How far a sweep goes: beyond, no published one was faster; a trained head's later guesses are seldom right.
MOST_TOKENS: dict[SpeculationKind, int] = {"draft": 8, "eagle": 6, "eagle3": 6, "mtp": 6, "ngram": 8}
SIMPLEST = ("off", "ngram", "mtp", "eagle", "eagle3", "draft")


class Family(Record, frozen=True):
    """Ways that differ in nothing but the number of draft tokens, the smallest first; one of None where there is none."""

    kind: SpeculationKind
    counts: tuple[int | None, ...]

    @property
    def ways(self) -> tuple[Way, ...]:
        """Its ways."""
        return tuple(Way(self.kind, count) for count in self.counts)


def plan_families(engine: str, draft_kind: SpeculationKind | None, has_draft_layers: bool) -> tuple[Family, ...]:
    """Returns all that can be tried: off, what drafts with a model's help, and n-gram lookup in what was said.

    `draft_kind` is what the draft beside the model is, None where there is none.
    """
    families = [Family("off", (None,))]
    if draft_kind is not None:
        families.append(_counted(draft_kind))
    elif has_draft_layers and engine != LLAMACPP:
        families.append(_counted("mtp"))
    families.append(Family("ngram", (None,)) if engine == LLAMACPP else _counted("ngram"))
    return tuple(families)


def _counted(kind: SpeculationKind) -> Family:
    return Family(kind, tuple(range(1, MOST_TOKENS[kind] + 1)))


def complexity(way: Way) -> tuple[int, int]:
    """Returns what orders ways from the simplest to the one that needs most."""
    return SIMPLEST.index(way.kind), way.draft_tokens or 0


def scouts(family: Family) -> tuple[Way, ...]:
    """Returns the ways that tell of all others of a family, the best scout first; the next where one does not start."""
    most = family.counts[-1]
    if most is None:
        return family.ways
    return tuple(Way(family.kind, count) for count in dict.fromkeys((most, max(1, most // 2), max(1, most // 4))))
