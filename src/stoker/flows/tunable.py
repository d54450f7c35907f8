"""Finds what can be tuned of a service: the ways to draft that its engine and files allow, and the one it has now."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stoker.config import DEMO, Config, demo_model
from stoker.engines import Engine, find
from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.model.read import read_model
from stoker.flows.planning import find_wish, make_plan
from stoker.plan.command import COMMAND
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.speculation import WITH_DRAFT, head_kind
from stoker.plan.wishes import MOST_DRAFT_TOKENS
from stoker.records import Model, Plan, Record, SpeculationKind, Way, Wish
from stoker.tune.families import OFF, Family, plan_families

# A plan that has one of these drafts, or says that it does not.
SPOKEN = ("speculation", "--speculative", "--spec-")
LARGE_DRAFT_SHARE = 0.3  # rule eagle-draft-size-30pct


class Tunable(Record, frozen=True):
    """A service as `stoker.toml` has it, its ways, the one it has now, and what the plan refuses, each with the reason."""

    wish: Wish
    plan: Plan
    families: tuple[Family, ...]
    present: Way
    refused: tuple[tuple[Way, str], ...] = ()
    warnings: tuple[str, ...] = ()

    def wish_for(self, way: Way) -> Wish:
        """Returns the wish for a way; the present one as it is written."""
        if way == self.present:
            return self.wish
        draft = None if way.kind in ("off", "ngram") else self.wish.draft
        return msgspec.structs.replace(self.wish, speculation=way.kind, draft=draft, draft_tokens=way.draft_tokens)


def read_tunable(service: str | None, config: Config) -> Tunable:
    """Returns what can be tuned of a service of stoker.toml, or of the demo; raises WrongUse or Refused."""
    wish = _find(service, config)
    plan = make_plan(wish)
    model, draft = read_model(Path(wish.model)), _read_draft(wish)
    engine = find(plan.engine)
    families = plan_families(plan.engine, _draft_kind(wish, plan, draft), bool(model.draft_layers))
    present = way_of(plan, engine, families, draft)
    if present is None:
        raise Refused(
            f"how {wish.name} drafts is said in its own flags",
            why="what is said there cannot be said in another way beside it",
            next_step="take those flags out, or say it by `speculation`, `draft` and `draft_tokens`",
        )
    tunable = Tunable(wish, plan, _with_present(families, present), present, warnings=tuple(_warn(model, draft)))
    return _without_refused(tunable)


def _find(service: str | None, config: Config) -> Wish:
    if service not in (None, DEMO) and service not in config.services:
        known = ", ".join(sorted({*config.services, DEMO}))
        raise WrongUse(f"there is no service called `{service}` in stoker.toml", next_step=f"name one of: {known}")
    wish = find_wish(service, config)
    if wish.engine == COMMAND:
        raise WrongUse(f"{wish.name} runs a command, and nothing is known of how it drafts")
    return wish


def _read_draft(wish: Wish) -> Model | None:
    if wish.draft:
        return read_model(Path(wish.draft))
    return read_model(demo_model(draft=True)) if Path(wish.model) == demo_model() else None


def _draft_kind(wish: Wish, plan: Plan, draft: Model | None) -> SpeculationKind | None:
    """Returns what drafts: what the service says of its draft, else what its files tell."""
    if draft is None:
        return None
    if wish.speculation in WITH_DRAFT or (wish.speculation == "mtp" and wish.draft):
        return wish.speculation
    kinds: dict[str, SpeculationKind] = {"eagle": "eagle", "eagle3": "eagle3"}
    return "draft" if plan.engine == LLAMACPP else kinds.get(head_kind(draft), "draft")


def way_of(plan: Plan, engine: Engine, families: tuple[Family, ...], draft: Model | None) -> Way | None:
    """Returns the way that a plan has, by what its engine would be told of each; None where none of them is it."""
    said = {one.name: one.value for one in plan.settings}
    if not any(name.startswith(SPOKEN) for name in said):
        return OFF
    for way in _possible(families):
        told = engine.speculate(way.kind, draft.path if draft and way.kind != "ngram" else None, way.draft_tokens or 1)
        if all(said.get(name) == value for name, value in told.items()):
            return way
    return None


def _possible(families: tuple[Family, ...]) -> Iterator[Way]:
    for family in families:
        if family.kind != "off":
            counts = (None,) if family.counts == (None,) else range(1, MOST_DRAFT_TOKENS + 1)
            yield from (Way(family.kind, count) for count in counts)


def _with_present(families: tuple[Family, ...], present: Way) -> tuple[Family, ...]:
    """Returns the families with the present way among them, should it draft more than a sweep would."""
    return tuple(
        msgspec.structs.replace(one, counts=(*one.counts, present.draft_tokens))
        if one.kind == present.kind and present.draft_tokens not in one.counts else one
        for one in families
    )  # fmt: skip


def _without_refused(tunable: Tunable) -> Tunable:
    """Leaves out the families of which the plan says that they cannot work; what one way is refused for, all are."""
    kept, refused = [], []
    for family in tunable.families:
        why = ""
        with contextlib.suppress(StopIteration):
            why = _refusal(tunable.wish_for(next(way for way in reversed(family.ways) if way != tunable.present)))
        if why and tunable.present not in family.ways:
            refused += [(way, why) for way in family.ways]
        else:
            kept.append(family)
    return msgspec.structs.replace(tunable, families=tuple(kept), refused=tuple(refused))


def _refusal(wish: Wish) -> str:
    try:
        make_plan(wish)
    except StokerError as problem:
        return f"{problem.what}{f' ({problem.why})' if problem.why else ''}"
    return ""


def _warn(model: Model, draft: Model | None) -> Iterator[str]:
    if draft is not None and draft.file_bytes > LARGE_DRAFT_SHARE * model.file_bytes:
        share = draft.file_bytes / model.file_bytes
        yield f"{draft.name} is {share:.0%} as large as {model.name}: each draft token costs about as much of a step (eagle-draft-size-30pct)"  # noqa: E501
