"""Settings whose text an engine wants to read from a file: the plan says the text, a launch the path. Pure."""

from __future__ import annotations

import hashlib

import msgspec

from stoker.engines import find
from stoker.errors import Refused
from stoker.records import Plan, Record, Setting

READ_ONLY = "ro"
DIGEST_DIGITS = 12


class TextFile(Record, frozen=True):
    """A file that has to lie beside an engine before it starts; its path tells its content, which never changes."""

    path: str
    text: str


def plan_beside(plan: Plan, folder: str) -> tuple[Plan, tuple[TextFile, ...]]:
    """Returns the plan with paths in the place of texts, and the files that have to lie there; a container sees each one."""
    files = {one: _file_of(one, plan.service, folder) for one in _texts(plan)}
    settings = tuple(_with_path(one, files[one]) if one in files else one for one in plan.settings)
    mounts = tuple((file.path, f"{file.path}:{READ_ONLY}") for file in files.values())
    return msgspec.structs.replace(plan, settings=settings, mounts=(*plan.mounts, *mounts)), tuple(files.values())


def check_nothing_beside(plan: Plan) -> None:
    """Raises Refused where a plan needs a file that a launch in this form has no place for."""
    for one in _texts(plan):
        raise Refused(
            f"{one.name} of {plan.service} is a file beside the engine, and this form brings none along",
            why=f"it holds {one.value}",
            next_step="leave it out (`draft_tiers` of the table, or `flags`), or let Stoker start it: it writes that file",
        )


def _texts(plan: Plan) -> list[Setting]:
    names = find(plan.engine).file_flags if plan.is_engine else ()
    return [one for one in plan.settings if one.name in names and str(one.value).lstrip().startswith("{")]


def _file_of(setting: Setting, service: str, folder: str) -> TextFile:
    text = f"{setting.value}\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]
    return TextFile(f"{folder}/{service}{setting.name[1:]}-{digest}.json", text)


def _with_path(setting: Setting, file: TextFile) -> Setting:
    return msgspec.structs.replace(setting, value=file.path)
