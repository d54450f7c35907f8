"""What one plan of a service has otherwise than another: its settings, and whatever else decides the launch. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.plan.secrets import HIDDEN, hide_words, is_secret
from stoker.records import Plan, Setting, say_bytes
from stoker.records.looking import PlanBeside, PlanChange

OTHER = "another one, which is not shown"
# In the order in which they explain most.
FACTS = {
    "model": "model's name", "model_path": "files", "revision": "revision", "engine": "engine", "engine_version": "version",
    "server": "server", "image": "image", "image_id": "image's digest", "unit": "unit", "port": "port", "group": "group",
}  # fmt: skip


def put_beside(here: Plan, there: Plan) -> PlanBeside:
    """Returns what the other plan has otherwise, in the order in which it has it; secrets are not shown."""
    changes = (*_of_facts(here, there), *_of_settings(here, there), *_of_memory(here, there))
    return PlanBeside(there.plan_id, there.model, changes)


def _of_facts(here: Plan, there: Plan) -> Iterator[PlanChange]:
    for name, words in FACTS.items():
        yield from _change(words, _say(getattr(here, name)), _say(getattr(there, name)))
    yield from _words("program", here.program, there.program)
    yield from _words("mounts", *(tuple(":".join(each) for each in one.mounts) for one in (here, there)))
    yield from _change("gate", _say(here.gate), _say(there.gate), there.gate_because)


def _of_settings(here: Plan, there: Plan) -> Iterator[PlanChange]:
    mine, theirs = ({one.name: one for one in plan.settings} for plan in (here, there))
    for name in dict.fromkeys((*theirs, *mine)):
        before, after = mine.get(name), theirs.get(name)
        because = (after or before or Setting(name, "", "")).because
        if before is None or after is None or before.value != after.value:
            yield PlanChange(name, _shown(before), _shown(after, before), because)


def _of_memory(here: Plan, there: Plan) -> Iterator[PlanChange]:
    needs = say_bytes(here.memory_need_bytes), say_bytes(there.memory_need_bytes)
    yield from _change("memory", *needs, there.memory_because)


def _words(name: str, here: tuple[str, ...], there: tuple[str, ...]) -> Iterator[PlanChange]:
    if here != there:
        before, after = _say(hide_words(here)), _say(hide_words(there))
        yield PlanChange(name, before, OTHER if before == after else after)


def _change(name: str, here: str | None, there: str | None, because: str = "") -> Iterator[PlanChange]:
    if here != there:
        yield PlanChange(name, here, there, because)


def _shown(one: Setting | None, other: Setting | None = None) -> str | None:
    """Returns a setting's value; of a secret that is another one than it was, that alone."""
    if one is None:
        return None
    if is_secret(one.name, one.value):
        return OTHER if other is not None else HIDDEN
    return _say(one.value)


def _say(value: object) -> str | None:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or None
    return None if value in (None, "") else str(value)
