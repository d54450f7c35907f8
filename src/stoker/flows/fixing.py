"""Applies what mends a failure: a changed wish, tried through the gate, and written down only once it is READY."""

from __future__ import annotations

import difflib
import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker import __version__
from stoker.box import clock_s
from stoker.clients.toml_lines import find_lines
from stoker.clients.toml_table import Value, write_table
from stoker.config import Config, Paths
from stoker.diagnose.redact import hide_secrets
from stoker.diagnose.remedy import changed_wish, choose_cause
from stoker.errors import Refused, StokerError
from stoker.flows.client import Daemon
from stoker.flows.client_files import write_mended
from stoker.flows.logs import find_log
from stoker.flows.planning import make_plan
from stoker.plan.secrets import without_secrets
from stoker.records import Cause, Diagnosis, Plan, SwitchView, Wish
from stoker.records.fixing import SavedFix
from stoker.store.services import read_saved

TABLES = ("flags", "environment")


class Fix(NamedTuple):
    """A changed wish. `settings` and `lines` are what changes in the plan and in stoker.toml, each begun with - or +."""

    service: str
    cause: Cause
    wish: Wish
    plan: Plan
    settings: tuple[str, ...]
    lines: tuple[str, ...]
    file: Path
    text: str
    new_text: str


def propose_fix(paths: Paths, config: Config, service: str | None) -> Fix:
    """Returns what would mend a service's last failure; raises Refused where no change of its wish does."""
    from stoker.flows.diagnose import diagnose_service

    name = find_log(paths, service).stem
    return find_fix(paths, config, name, diagnose_service(paths, name, None))


def find_fix(paths: Paths, config: Config, name: str, told: Diagnosis) -> Fix:
    """Returns what would mend a service by what is told of its log; raises Refused where no change of its wish does."""
    cause = choose_cause(told)
    wish = config.services.get(name)
    before = next((saved.plan for saved in read_saved(paths.database) if saved.plan.service == name), None)
    if wish is None or config.source is None or before is None:
        raise Refused(
            f"{name} is no service of stoker.toml, so nobody knows what was asked for",
            next_step=f"give it a table [service.{name}] there, or say it to `stoker up`: {say_change(cause)}",
            rule=cause.rule,
        )
    fresh = changed_wish(wish, cause, before.engine)
    plan = make_plan(fresh)
    if plan.plan_id == before.plan_id:
        raise Refused(
            f"the plan of {name} says that already, so it would end as before", why=cause.cause, next_step=cause.fix,
            rule=cause.rule,
        )  # fmt: skip
    file = Path(config.source)
    if not os.access(file.parent, os.W_OK):
        raise Refused(f"{file} cannot be written", next_step="apply it as its owner")
    text = _read(file)
    new_text = write_wish(text, wish, fresh, cause)
    return Fix(name, cause, fresh, plan, changed_settings(before, plan), _differences(text, new_text), file, text, new_text)


def digest_of(fix: Fix) -> str:
    """Returns what stands for exactly this fix: whoever says yes to it names it."""
    said = msgspec.json.encode((fix.service, fix.plan.plan_id, fix.text, fix.new_text))
    return hashlib.sha256(said).hexdigest()[:24]


def write_fix(fix: SavedFix) -> Path:
    """Writes the change into stoker.toml, whole or not at all, and returns the copy of what was there before."""
    file = Path(fix.file)
    if _read(file) != fix.text:
        raise Refused(
            f"{fix.tried.service} is READY with the change, but {file} was changed meanwhile and stays as it is",
            next_step=f"put it in yourself: {'; '.join(line[2:] for line in fix.lines if line.startswith('+'))}",
        )
    return write_mended(file, fix.new_text)


def begin_fix(daemon: Daemon, fix: Fix) -> SwitchView:
    """Has the daemon try a fix and write it down; raises Refused where it finds another one by now."""
    return daemon.apply_fix(fix.service, digest_of(fix))


def await_written(daemon: Daemon, view: SwitchView) -> str:
    """Waits until the daemon has written down a fix that led to READY, and says where; raises Refused if it has not."""
    while (tried := daemon.await_fix(view.since)) is not None and tried.since == view.since:
        if tried.outcome == "written":
            return tried.why
        if tried.outcome is not None:
            raise Refused(f"{view.service} is READY with the change, and no file says so", why=tried.why)
    raise StokerError(f"nobody knows what came of the fix of {view.service}", next_step="look into stoker.toml")


def say_change(cause: Cause) -> str:
    """Returns a fix in a few words: what to set, and what to leave out."""
    said = [f"{name} {value}" for name, value in cause.use.items()] + [f"without {name}" for name in cause.drop]
    return ", ".join(said)


def changed_settings(before: Plan, after: Plan) -> tuple[str, ...]:
    """Returns the settings in which two plans differ, those of the first with a minus; secrets are hidden."""
    old, new = ({one.name: str(one.value) for one in without_secrets(plan.settings)} for plan in (before, after))
    gone = [f"- {name} {value}" for name, value in old.items() if new.get(name) != value]
    return (*gone, *(f"+ {name} {value}" for name, value in new.items() if old.get(name) != value))


def write_wish(text: str, old: Wish, new: Wish, cause: Cause) -> str:
    """Returns the text of stoker.toml with a changed wish; raises Refused where it cannot be written safely."""
    path, mark, said = ("service", new.name), f"# fix of {cause.rule}: ", (_comment(cause),)
    tables = {one.path for one in find_lines(text).blocks}
    own: dict[str, Value] = {}
    gone: list[str] = []
    for name in Wish.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        if name in TABLES and ".".join((*path, name)) in tables:
            text = write_table(text, (*path, name), _differing(after, before), _left_out(before, after), mark, said)
        elif after in (None, {}):
            gone.append(name)
        else:
            own[name] = after
    return write_table(text, path, own, gone, mark, said) if own or gone else text


def _differing(new: Mapping[str, Value], old: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in new.items() if old.get(name) != value}


def _left_out(old: Mapping[str, Value], new: Mapping[str, Value]) -> list[str]:
    return [name for name in old if name not in new]


def _comment(cause: Cause) -> str:
    day = time.strftime("%Y-%m-%d", time.localtime(clock_s()))
    return f"{day}, Stoker {__version__}: {cause.title}"


def _differences(old: str, new: str) -> tuple[str, ...]:
    lines = difflib.ndiff(old.splitlines(), new.splitlines())
    return tuple(hide_secrets(line) for line in lines if line.startswith(("- ", "+ ")))


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, ValueError) as problem:
        raise StokerError(f"{file} cannot be read", why=str(problem)) from problem
