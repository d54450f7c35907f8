"""What would run well on a machine where nothing is configured: the models that lie there, planned and ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from stoker.errors import StokerError
from stoker.facts.machine.boxes import THIS, read_box
from stoker.facts.model.found import find_models
from stoker.facts.model.read import read_model
from stoker.flows.planning import bind_plan, report_on
from stoker.plan.speed.memory import memory_of
from stoker.plan.suggestions import ORDER, rank, suggest_model, suggest_published, suggest_refused
from stoker.plan.wishes import name_for
from stoker.records import Model, Report, Wish
from stoker.records.suggesting import Reach, Suggestion, SuggestionsView

MOST_READ = 40  # models whose headers are read: a tenth of a second each
MOST_SHOWN = 12
USABLE_SHARE = 0.9  # of all memory, where no report says how much engines may have


def suggest(environment: Mapping[str, str], box: str = THIS) -> SuggestionsView:
    """Returns suggestions; what cannot be read is left out, since nothing can be said of it."""
    targets = find_models(environment)
    here = list(_suggest_here(targets[:MOST_READ], box))
    machine = read_box(box)
    memory = memory_of(machine)
    elsewhere = ()
    if memory is not None and memory.fitted:
        elsewhere = suggest_published(memory, int(machine.memory.total_bytes * USABLE_SHARE))
    return SuggestionsView((*rank(here)[:MOST_SHOWN], *elsewhere), len(targets), ORDER)


def _suggest_here(targets: tuple[str, ...], box: str) -> Iterator[Suggestion]:
    for target in targets:
        try:
            model = read_model(Path(target))
        except StokerError:
            continue
        if not model.is_draft_head:
            yield _suggest(target, model, box)


def _suggest(target: str, model: Model, box: str) -> Suggestion:
    wish = wish_for(target)
    try:
        report = report_on(wish, box)
    except StokerError as problem:
        return suggest_refused(wish.name, target, model, _say(problem))
    return suggest_model(target, model, report, *_reach(report))


def wish_for(target: str) -> Wish:
    """Returns the wish of a model that was found, as `stoker up` would have it."""
    name = PurePosixPath(target.replace(":", "-"))
    return Wish(name=name_for(name.stem if name.suffix == ".gguf" else name.name), model=target)


def _reach(report: Report) -> tuple[Reach, str]:
    try:
        bind_plan(report)
    except StokerError as problem:
        return "blocked", _say(problem)
    if report.budget is not None and report.budget.fits_now is False:
        return "waits", "it starts once as much memory is free"
    return "now", ""


def _say(problem: StokerError) -> str:
    return " ".join(f"{part}." for part in (problem.what, problem.why, problem.next_step) if part)
