"""Finds what can be tuned of a service: the ways to draft that its engine and files allow, or sizes, and what it has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from stoker.config import DEMO, Config, demo_model
from stoker.engines import Engine, find
from stoker.errors import Refused, StokerError, WrongUse, service_hint
from stoker.facts.model.read import read_model
from stoker.flows.planning import find_wish, make_plan, served_names
from stoker.plan.command import COMMAND
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.speculation import WITH_DRAFT, head_kind
from stoker.plan.wishes import DRAFTING, MOST_DRAFT_TOKENS
from stoker.records import Model, Plan, Record, SettingValue, SpeculationKind, Way, Wish
from stoker.tune.families import OFF, Family, Size, plan_families, plan_sizes

Knob = Literal["drafts", Size]
# A plan that has one of these drafts, or says that it does not.
SPOKEN = ("speculation", "--speculative", "--spec-")
LARGE_DRAFT_SHARE = 0.3  # rule eagle-draft-size-30pct


class Tunable(Record, frozen=True):
    """A service as `stoker.toml` has it, its ways, the one it has now, and what the plan refuses, each with the reason.

    `keys` are those of its table that a way decides.
    """

    wish: Wish
    plan: Plan
    families: tuple[Family, ...]
    present: Way
    keys: tuple[str, ...]
    refused: tuple[tuple[Way, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """How many requests the service answers at once, by its plan."""
        said = (one.value for one in self.plan.settings if one.name == "parallel")
        return next((value for value in said if isinstance(value, int)), 1)

    def wish_for(self, way: Way) -> Wish:
        """Returns the wish for a way; the present one as it is written."""
        if way == self.present:
            return self.wish
        said = dict.fromkeys(self.keys) | way.keys
        if "draft" in said and way.kind not in ("off", "ngram"):
            said["draft"] = self.wish.draft
        return msgspec.structs.replace(self.wish, **said)


def read_tunable(
    service: str | None, config: Config, knob: Knob = "drafts", concurrency: int = 1, only: Sequence[str] = ()
) -> Tunable:
    """Returns what can be tuned of a service of stoker.toml, or of the demo; raises WrongUse or Refused.

    Sizes are for a load of so many requests at once. `only` names the families of drafts that are tried beside off and
    what the service has; none: all.
    """
    wish = _find(service, config)
    plan = make_plan(wish)
    found = _read_drafts(wish, plan, only) if knob == "drafts" else _read_sizes(wish, plan, knob, concurrency)
    return _without_refused(found)


def _read_drafts(wish: Wish, plan: Plan, only: Sequence[str]) -> Tunable:
    model, draft = read_model(Path(wish.model)), _read_draft(wish)
    engine = find(plan.engine)
    families = plan_families(engine, _draft_kind(wish, plan, draft), bool(model.draft_layers))
    present = way_of(plan, engine, families, draft, wish)
    if present is None:
        raise Refused(
            f"how {wish.name} drafts is said in its own flags",
            why="what is said there cannot be said in another way beside it",
            next_step="take those flags out, or say it by `speculation`, `draft` and `draft_tokens`",
        )
    families = _with_present(_select(families, only), present)
    return Tunable(wish, plan, families, present, ("speculation", "draft", *DRAFTING), warnings=tuple(_warn(model, draft)))


def _select(families: tuple[Family, ...], only: Sequence[str]) -> tuple[Family, ...]:
    known = list(dict.fromkeys(one.name for one in families if one.ways != (OFF,)))
    unknown = [name for name in only if name not in known]
    if unknown:
        raise WrongUse(
            f"there are no ways of the kind `{unknown[0]}` for this service",
            why="they are for another engine, or there is no draft for them",
            next_step=f"name one of: {', '.join(known)}",
        )
    return tuple(one for one in families if not only or one.ways == (OFF,) or one.name in only)


def _read_sizes(wish: Wish, plan: Plan, size: Size, concurrency: int) -> Tunable:
    engine = find(plan.engine)
    if size not in engine.spelling:
        raise Refused(f"{plan.engine} has no `{size}` to tune", next_step="tune another size, or how it drafts")
    flag = next((flag for flag in engine.spelling[size] if flag.removeprefix("--") in wish.flags), None)
    if flag is not None:
        raise Refused(f"`{size}` of {wish.name} is said in its own flags ({flag})", next_step=f"say it by `{size}`")
    present = _present_size(plan, engine, size)
    if present is None and size != "batch_tokens":
        raise Refused(
            f"the plan of {wish.name} has no `{size}` to begin with",
            why="without a GPU there are neither graphs nor a share of its memory",
            next_step="tune another size, or how it drafts",
        )
    family = plan_sizes(size, present, concurrency)
    return Tunable(wish, plan, (family,), msgspec.structs.replace(Way(), **{size: present}), (size,))


def _present_size(plan: Plan, engine: Engine, size: Size) -> float | None:
    """Returns the size that a plan says; None where it leaves it to the engine."""
    names = (size, *engine.spelling[size])
    value = next((one.value for one in plan.settings if one.name in names), None)
    return value if isinstance(value, int | float) else None


def _find(service: str | None, config: Config) -> Wish:
    if service not in (None, DEMO) and service not in config.services:
        known = served_names(config)
        hint = service_hint(str(service), known, f"name one of: {', '.join(known)}", "stoker tune")
        raise WrongUse(f"there is no service called `{service}` in stoker.toml", next_step=hint)
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
    return "draft" if plan.engine == LLAMACPP else head_kind(draft)


def way_of(plan: Plan, engine: Engine, families: tuple[Family, ...], draft: Model | None, wish: Wish) -> Way | None:
    """Returns the way that a plan has, by what its engine would be told of each; None where none of them is it."""
    said = {one.name: one.value for one in plan.settings}
    if not any(name.startswith(SPOKEN) for name in said):
        return OFF
    for way in _possible(families, engine, wish):
        told = engine.speculate(way, draft.path if draft and way.kind != "ngram" else None)
        if all(_is_said(name, value, said, engine) for name, value in told.items()):
            return way
    return None


def _is_said(name: str, value: SettingValue, said: dict[str, SettingValue], engine: Engine) -> bool:
    return any(said.get(one) == value for one in (name, *engine.spelling.get(name, ())))


def _possible(families: tuple[Family, ...], engine: Engine, wish: Wish) -> Iterator[Way]:
    """What the table says beside kind and number stands; those two are often left to the plan."""
    kinds = dict.fromkeys(one.kind for one in families if one.kind not in (None, "off"))
    for kind in kinds:
        extras = {name: getattr(wish, name) or None for name in DRAFTING if kind in engine.drafting.get(name, ())}
        uncounted = Way(**extras | {"kind": kind, "draft_tokens": None})
        if Family((uncounted,), None) in families or uncounted.draft_adaptive or uncounted.draft_tiers:
            yield uncounted
        for count in range(1, MOST_DRAFT_TOKENS + 1):
            yield msgspec.structs.replace(uncounted, draft_tokens=count)


def _with_present(families: tuple[Family, ...], present: Way) -> tuple[Family, ...]:
    """Returns the families with the present way among them, should it be none that a sweep would try."""
    if any(present in one.ways for one in families):
        return families
    like = msgspec.structs.replace(present, draft_tokens=1)
    own = [one for one in families if one.axis and msgspec.structs.replace(one.ways[0], draft_tokens=1) == like]
    if not own:
        return (*families, Family((present,), None, is_scouted=False))
    ways = tuple(sorted((*own[0].ways, present), key=lambda one: one.draft_tokens or 0))
    longer = msgspec.structs.replace(own[0], ways=ways)
    return tuple(longer if one == own[0] else one for one in families)


def _without_refused(tunable: Tunable) -> Tunable:
    """Leaves out what the plan says cannot work: families of drafts whole, since what one is refused for all are."""
    kept: list[Family] = []
    refused: list[tuple[Way, str]] = []
    for family in tunable.families:
        judged = [way for way in family.ways if way != tunable.present]
        if family.axis == "draft_tokens":
            judged = judged[-1:] if tunable.present not in family.ways else []
        reasons = {way: why for way in judged if (why := _refusal(tunable.wish_for(way)))}
        if family.axis == "draft_tokens" and reasons:
            reasons = dict.fromkeys(family.ways, *reasons.values())
        refused += reasons.items()
        left = tuple(way for way in family.ways if way not in reasons)
        kept += [msgspec.structs.replace(family, ways=left)] if left else []
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
