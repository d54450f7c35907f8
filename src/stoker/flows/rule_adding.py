"""Begins a rule of the user's own from a failure, checked as those that ship are, and found again in that very log."""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec

from stoker.box import clock_s
from stoker.clients.toml_table import line_of
from stoker.config import Paths
from stoker.diagnose.anchors import find_anchors
from stoker.diagnose.blocks import read_blocks
from stoker.diagnose.judge import show_line
from stoker.diagnose.sentence import most_telling
from stoker.diagnose.sign_of import message_of, sign_of
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.diagnose import diagnose_log, diagnose_service, is_service
from stoker.flows.logs import find_log
from stoker.records import Diagnosis, Evidence, Rule, Scalar
from stoker.rules.check import find_problems
from stoker.rules.load import load_rules, local_folder
from stoker.supervise.logs import visible

REVIEW_DAYS = 365
LONGEST_TITLE = 80
SCOPE = ("engine", "sm")
UNSAID = "not known yet; edit this rule once it is"
HEAD = """\
# A rule of your own: `stoker rules --help` and the folder of the rules that ship say what may stand here.
[[rule]]
"""


class Draft(msgspec.Struct, frozen=True):
    """What the user said of a rule."""

    id: str
    line: int | None = None
    title: str | None = None
    cause: str | None = None
    fix: str | None = None
    uses: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


def add_rule(paths: Paths, target: str | None, draft: Draft) -> Rule:
    """Writes a rule and returns it; raises Refused where it is not as it should be, or would not be found in that log."""
    of_service = target is None or is_service(paths, target)
    log = find_log(paths, target) if of_service else Path(target or "")
    told = diagnose_service(paths, log.stem, None) if of_service else diagnose_log(str(log), None)
    rule = msgspec.structs.replace(_make(draft, told, _line_of(log, told, draft)), local=str(_file_of(draft.id)))
    known = {one.id: one for one in load_rules()}
    problems = find_problems(rule, known, _today())
    if not find_anchors(rule.signs[0]):
        problems.append(f"its sign {rule.signs[0]!r} holds no word of four letters: take another --line")
    if problems:
        raise Refused(f"the rule {draft.id} is not as it should be", why="; ".join(problems), next_step="say it otherwise")
    _write(rule)
    again = diagnose_service(paths, log.stem, None) if of_service else diagnose_log(str(log), None)
    if rule.id not in {one.rule for one in again.findings}:
        _file_of(rule.id).unlink()
        raise Refused(
            f"the rule {rule.id} is not found in {log}, so it was not kept",
            why="the line is not of the start that is told of, or a client wrote it",
            next_step="take another --line of its last start",
        )
    return rule


def _file_of(rule_id: str) -> Path:
    return local_folder() / f"{rule_id}.toml"


def _line_of(log: Path, told: Diagnosis, draft: Draft) -> str:
    if draft.line is not None:
        return _read_line(log, draft.line)
    if (line := most_telling(told)) is not None:
        return line.text
    sure = [one.rule for one in told.findings if one.confidence != "possible"]
    raise Refused(
        f"nothing in {log} is without an explanation" if sure else f"no line of {log} looks like a fault",
        why=f"it is told by {', '.join(sure)}" if sure else "",
        next_step="name the line with --line",
    )


def _read_line(log: Path, number: int) -> str:
    try:
        with log.open("rb") as source:
            for block in read_blocks(source):
                lines = block.data.split(b"\n")
                if block.first_line <= number < block.first_line + len(lines):
                    return show_line(visible(lines[number - block.first_line]))
    except OSError as problem:
        raise WrongUse(f"{log} cannot be read", why=str(problem)) from problem
    raise WrongUse(f"{log} has no line {number}")


def _make(draft: Draft, told: Diagnosis, line: str) -> Rule:
    version = f" {told.version}" if told.version else ""
    evidence = Evidence(
        source=f"a failure in the log of {told.source}", build=f"{told.engine or 'an engine not known'}{version}",
        date=_today(), standing="reported", says=line,
    )  # fmt: skip
    title = draft.title or message_of(line, LONGEST_TITLE)
    try:
        return msgspec.convert(
            {
                "id": draft.id, "title": title, "severity": "crash", "topic": "log", "cause": draft.cause or UNSAID,
                "fix": draft.fix or UNSAID, "evidence": [evidence], "signs": [sign_of(line)],
                "review_by": _today() + datetime.timedelta(days=REVIEW_DAYS),
                "when": {name: told.facts[name] for name in SCOPE if name in told.facts},
                "use": dict(map(_setting, draft.uses)), "drop": draft.drops, "contradicts": draft.contradicts,
            },
            Rule, from_attributes=True,
        )  # fmt: skip
    except msgspec.ValidationError as problem:
        raise WrongUse(f"the rule {draft.id} cannot be made", why=str(problem)) from problem


def _setting(said: str) -> tuple[str, Scalar]:
    name, _, value = said.partition("=")
    if not name.startswith(("--", "$")) or not value:
        raise WrongUse(f"--use takes --FLAG=VALUE or $VARIABLE=VALUE, not {said!r}")
    return name, value


def _today() -> datetime.date:
    return datetime.datetime.fromtimestamp(clock_s(), tz=datetime.UTC).date()


def _write(rule: Rule) -> None:
    file = _file_of(rule.id)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as out:
            out.write(HEAD + "\n".join(_lines(rule)) + "\n")
    except FileExistsError as problem:
        raise Refused(f"there is a rule in {file} already", next_step="edit that one, or take another id") from problem
    except OSError as problem:
        raise StokerError(f"{file} cannot be written", why=problem.strerror or str(problem)) from problem


def _lines(rule: Rule) -> list[str]:
    plain = ("id", "title", "severity", "topic", "cause", "fix", "when", "signs", "use", "drop", "contradicts")
    lines = [line_of(name, value) for name in plain if (value := getattr(rule, name))]
    [seen] = rule.evidence
    said = ", ".join(line_of(name, getattr(seen, name)) for name in ("source", "build", "standing", "says"))
    return [*lines, f"review_by = {rule.review_by}", f"evidence = [{{ {said}, date = {seen.date} }}]"]
