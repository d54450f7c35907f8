"""Tells why an engine failed: its log and what is known of its launch, held against the rules."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.config import SERVICE_NAME, Paths
from stoker.diagnose.blocks import Source, read_blocks
from stoker.diagnose.clues import engine_of, is_launch_told, read_clues
from stoker.diagnose.ending import Ending
from stoker.diagnose.heard import Heard, Start
from stoker.diagnose.judge import find_suspects, tell_causes, tell_noise, tell_unknown
from stoker.diagnose.scan import Scanner
from stoker.diagnose.signs import all_signs
from stoker.engines import engine_of_image
from stoker.errors import StokerError, WrongUse, service_hint
from stoker.facts.machine.boxes import THIS, read_box
from stoker.flows.logs import find_log
from stoker.flows.reading import read_text
from stoker.flows.timeline import launch_facts
from stoker.plan.lint import recipe_facts
from stoker.plan.secrets import hide_words
from stoker.plan.situation import Facts, image_facts, machine_facts
from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import say_command
from stoker.plan.written.read import read_written
from stoker.records import Cause, Diagnosis, Finding, Recipe, Rule, Service, State
from stoker.rules.compare import Value
from stoker.rules.load import load_rules
from stoker.store.services import read_saved

STANDARD_INPUT = "-"
CONTAINER_ENGINES = ("docker", "podman")
ENDING = frozenset({State.STOPPING, State.SETTLING, State.WEDGED})
# As the last line of the log: how it ended is a sign like any other.
STATE = "exit code {{.State.ExitCode}}, OOMKilled={{.State.OOMKilled}} {{.State.Error}} image={{.Config.Image}}"
# How people name a machine whose facts Stoker ships.
BOXES = ((re.compile(r"\bGB10\b|DGX Spark|\bsm_?121|capability 12\.1", re.IGNORECASE), "gb10"),)
COLLECT = (
    "the log from its very first line: what stands before the first fault often says why",
    "the launch command, or `stoker diagnose LOG --context FILE` with a file that holds it",
    "`stoker facts --json` from the machine on which it ran, as --context too",
    "`journalctl -k -b | grep -iE 'oom|nvrm|xid'`: what the kernel said while the engine ended",
)


class Known(msgspec.Struct):
    """What is known besides the log: facts by the rules' names, and the launch where it can be mended."""

    facts: Facts
    launch_known: bool = False
    recipe: Recipe | None = None
    has_ended: bool = False  # the last start in the log, whatever it said


def diagnose_log(name: str, context: str | None, models: Mapping[str, str | None] | None = None) -> Diagnosis:
    """Returns what a log file says, `-` for standard input; raises WrongUse where it cannot be read.

    `models` are the services that a person may have meant, with their models.
    """
    with open_log(name, models or {}) as source:
        return diagnose_source(source, name, read_context(context))


def diagnose_service(paths: Paths, service: str | None, context: str | None) -> Diagnosis:
    """Returns what the log of a service of this machine says, with its plan; without a name of the one that spoke last."""
    log = find_log(paths, service)
    known = read_context(context)
    saved = next((one for one in read_saved(paths.database) if one.plan.service == log.stem), None)
    plan = saved.plan if saved is not None else None
    known.has_ended = saved is not None and _has_failed(saved.service)
    if plan is not None:
        known.facts = launch_facts(paths, plan) | {"engine": plan.engine} | known.facts
        known.launch_known = True
    else:
        known.facts = machine_facts(read_box(THIS)) | known.facts
    with log.open("rb") as source:
        return diagnose_source(source, log.stem, known)


def _has_failed(service: Service) -> bool:
    return State.FAILED in (service.state, service.then if service.state in ENDING else None)


def is_service(paths: Paths, name: str) -> bool:
    """Tells whether a word names a service that has spoken here, and no file."""
    return SERVICE_NAME.fullmatch(name) is not None and paths.engine_log(name).exists() and not Path(name).is_file()


@contextmanager
def open_log(name: str, models: Mapping[str, str | None]) -> Iterator[Source]:
    """Opens a file, a pipe or standard input."""
    if name == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        opened = Path(name).open("rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as problem:
        raise WrongUse(
            f"{name} is neither a service with a log here nor a file that can be read",
            why=getattr(problem, "strerror", None) or str(problem),
            next_step=service_hint(
                name, models, "`stoker status` names the services; `-` reads what is piped in", "stoker diagnose"
            ),
        ) from problem
    with opened:
        if stat.S_ISCHR(os.fstat(opened.fileno()).st_mode) and name != os.devnull:
            raise WrongUse(f"{name} is a device, and may never end")
        yield opened


def read_context(context: str | None) -> Known:
    """Returns what a text or a file tells of a launch and a machine: a command, facts as JSON, or the machine's name."""
    if context is None:
        return Known({})
    with suppress(OSError, ValueError):
        if Path(context).is_file():
            if found := _read_box(context):
                return Known(found)
            context = read_text(Path(context), "a launch or a machine's facts")
    box = next((box for pattern, box in BOXES if pattern.search(context)), None)
    machine = read_box(box or THIS)
    facts = machine_facts(machine) if box else {}
    with suppress(StokerError):
        if recipes := read_written(context, ""):
            told = recipe_facts(recipes[0], machine)
            launch = {name: value for name, value in told.items() if box or name not in machine_facts(machine)}
            return Known(facts | launch, launch_known=True, recipe=recipes[0])
    return Known(facts)


def _read_box(file: str) -> Facts | None:
    with suppress(StokerError):
        return machine_facts(read_box(str(Path(file).absolute())))
    return None


def diagnose_source(source: Source, name: str, known: Known) -> Diagnosis:
    """Returns what a log says, read to its end."""
    rules = load_rules()
    provoked = frozenset(rule.id for rule in rules if rule.is_provoked)
    following = frozenset(rule.id for rule in rules if rule.is_consequence)
    heard, ending, lines = Heard(provoked, following), Ending(), 0
    scanner = Scanner(all_signs(rules))
    for block in read_blocks(source):
        heard.add(scanner.scan(block))
        ending.add(block)
        lines = block.first_line + block.data.count(b"\n") - block.data.endswith(b"\n")
    return _judge(heard, ending, lines, name, known, rules)


def _judge(heard: Heard, ending: Ending, lines: int, name: str, known: Known, rules: tuple[Rule, ...]) -> Diagnosis:
    start = heard.told(known.has_ended)
    told = read_clues(start)
    facts = told | known.facts
    suspects = find_suspects(start, rules, facts, known.launch_known or is_launch_told(told))
    findings = tuple(_with_command(one, known) for one in tell_causes(suspects, start.times))
    is_explained = any(_explains(one, start) for one in findings)
    faults = () if is_explained else tell_unknown(start, suspects)
    has_ended = known.has_ended and start.stop_line is None  # one that was told to stop ended for that
    breaks_off = not is_explained and not faults and (start.ready_line is None or has_ended)
    unknown = ending.lines() if breaks_off else faults
    return Diagnosis(
        source=name,
        engine=_text(facts.get("engine")) or engine_of(start),
        version=_text(facts.get("version")),
        findings=findings,
        noise=tell_noise(suspects),
        unknown=unknown,
        collect=COLLECT if unknown or breaks_off else (),
        breaks_off=breaks_off,
        lines=lines,
        starts=heard.starts,
        ready=start.ready_line is not None,
        stopped=start.stop_line is not None,
        facts={fact: str(value) for fact, value in facts.items() if not fact.startswith(("--", "$"))},
    )


def _explains(cause: Cause, start: Start) -> bool:
    """Tells whether a finding says why it went wrong: what only makes it slower ends no start."""
    return cause.confidence != "possible" and (cause.severity != "slow" or start.ready_line is not None)


def _text(value: Value) -> str | None:
    return str(value) if isinstance(value, str) else None


def _with_command(cause: Cause, known: Known) -> Cause:
    """Returns a finding with the launch as it should have been, where the launch is at hand and flags mend it."""
    if known.recipe is None or not (cause.use or cause.drop) or cause.confidence == "possible":
        return cause
    finding = Finding("warn", cause.rule, cause.title, cause.cause, cause.fix, use=cause.use, drop=cause.drop)
    words = hide_words(mended(known.recipe, (finding,), None))
    return msgspec.structs.replace(cause, command=say_command(words, frozenset()))


def diagnose_container(name: str, context: str | None) -> Diagnosis:
    """Returns what a container's log and state say; raises WrongUse where no container engine here knows it."""
    box = LocalBox()
    known = read_context(context)
    for engine in CONTAINER_ENGINES:
        found = box.run((engine, "inspect", "--type", "container", "--format", STATE, "--", name))
        if found is None:
            continue
        state, _, image = found.strip().rpartition(" image=")
        known.facts = machine_facts(read_box(THIS)) | image_facts(image) | known.facts
        known.facts |= {"engine": told} if (told := engine_of_image(image)) else {}
        with box.open_output((engine, "logs", "--", name)) as output:
            return diagnose_source(_Chained(output, io.BytesIO(f"\n{state}\n".encode())), name, known)
    raise WrongUse(
        f"there is no container called `{name}`",
        why=f"neither {' nor '.join(CONTAINER_ENGINES)} knows one",
        next_step="`docker ps -a` lists those that ended, too",
    )


class _Chained:
    """One source after the other."""

    def __init__(self, *sources: Source) -> None:
        self._sources = list(sources)

    def read(self, size: int, /) -> bytes:
        while self._sources:
            if found := self._sources[0].read(size):
                return found
            self._sources.pop(0)
        return b""
