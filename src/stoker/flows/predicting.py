"""Predicts speeds: of the rows of a table, of a model that is here, or of one that is only known by name."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import msgspec

from stoker.config import DEMO, Config, find_paths, is_hub_name
from stoker.engines import names
from stoker.errors import WrongUse, service_hint
from stoker.facts.machine.boxes import THIS, read_box
from stoker.facts.machine.memory_rate import measure_memory_rate
from stoker.facts.model.hub import find_snapshot
from stoker.facts.model.read import read_model
from stoker.flows.plain_rates import find_plain_rate
from stoker.flows.planning import find_wish, read_draft, served_names
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.speculation import head_kind
from stoker.plan.speed.capacity import MOST_AT_ONCE, Habits
from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.curve import rates_from_mean
from stoker.plan.speed.from_model import served_of
from stoker.plan.speed.layout import plan_layout, read_quantisation
from stoker.plan.speed.links import costs_of
from stoker.plan.speed.memory import GIGA, MemoryOf, known_memory, memory_of
from stoker.plan.speed.outlook import Question, predict_speed
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.room import room_for, say_room
from stoker.plan.speed.speculation import Drafting, expected_length, sort_of, usual_rates
from stoker.plan.speed.table import predict_table
from stoker.plan.speed.ways import load_of
from stoker.plan.speed.work import Served
from stoker.plan.spread.sizes import ways_of
from stoker.plan.spread.worth import kind_of, with_speeds
from stoker.records import Machine, Record, RowsView, SpeedView
from stoker.records.speed import LinkKind, WayView

STDIN, GGUF = "-", "gguf"
USUAL_ENGINE = "vllm"
FITTED = "gb10"  # the machine that the fit is of


class Asking(Record, frozen=True):
    """What a person asks of `stoker predict`; None is as usual."""

    box: str = THIS
    engine: str | None = None
    quantisation: str | None = None
    bandwidth_gb_s: float | None = None
    requests: int = 1
    prompt: int = 1000
    answer: int = 400
    measured_tok_s: float | None = None
    method: str | None = None
    draft: str | None = None
    draft_tokens: int | None = None
    accept_rates: tuple[float, ...] = ()
    accept_rate: float | None = None
    users: int | None = None
    think_s: float = 20.0
    boxes: int = 1
    link: LinkKind = "unknown"


def predict_rows(path: str) -> RowsView:
    """Returns the predictions for a table in a file, or from standard input where it is `-`."""
    return predict_table(_read_text(path), load_fit())


def _read_text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(f"{path} cannot be read", why=error.strerror or str(error), next_step="name a CSV file") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise WrongUse(
            f"line {line}, column {column} of {path}: this is no UTF-8 text",
            why=f"it holds the byte 0x{data[error.start]:02x}", next_step="save it as UTF-8",
        ) from error  # fmt: skip


def predict_model(target: str, config: Config, asking: Asking) -> SpeedView:
    """Returns what is predicted for a model; raises WrongUse where nobody knows it, or what was asked contradicts itself."""
    asking = msgspec.structs.replace(asking, method=sort_of(asking.method or ""))
    served, name, quantisation, has_files = _find_served(target, config, asking)
    draft, draft_name = _find_draft(target, config, asking, served.engine)
    stored = _say_guess(draft, draft_name)
    machine, memory, note = _find_memory(asking, has_files)
    size_bytes = _memory_bytes(asking, has_files)
    tokens = asking.prompt + asking.answer
    short = say_room(served, size_bytes, tokens, draft)
    most = min(room_for(served, size_bytes, tokens, draft), _parallel(target, config))
    habits = () if short else _habits(asking, most)
    measured, run_id = _measured(target, config, asking)
    question = Question(
        served=served, requests=asking.requests, prompt=asking.prompt, measured_tok_s=measured,
        method=asking.method, rates=_rates(asking), habits=habits, drafted=_drafted(asking, draft), draft=draft,
    )  # fmt: skip
    view = predict_speed(question, name, quantisation, machine, memory, load_fit())
    view = msgspec.structs.replace(view, machine_note="; ".join(filter(None, (note, stored, short))), draft=draft_name)
    if asking.boxes > 1 and memory.fitted:
        view = msgspec.structs.replace(view, ways=_ways(served, asking, draft))
    if view.measured is None or run_id is None:
        return view
    return msgspec.structs.replace(view, measured=msgspec.structs.replace(view.measured, run_id=run_id))


def _ways(served: Served, asking: Asking, draft: Served | None) -> tuple[WayView, ...]:
    """The ways to use so many boxes side by side, each without what a plan would tell of memory and heads."""
    load = load_of(served, None, asking.prompt, _drafted(asking, draft))
    costs, fit, counts = costs_of(asking.link), load_fit(), sorted({1, asking.requests})
    return tuple(
        with_speeds(WayView(kind_of(way), way.boxes, way.tensor, way.pipeline), way, load, costs, fit, counts)
        for way in ways_of(asking.boxes)
    )


def _measured(target: str, config: Config, asking: Asking) -> tuple[float | None, int | None]:
    """Returns the rate without drafts: what the person says, else what was measured of a service here, with its run."""
    is_service = target == DEMO or target in config.services
    if asking.measured_tok_s is not None or asking.box != THIS or not is_service:
        return asking.measured_tok_s, None
    model = find_wish(target, config).model
    if not model:
        return None, None
    revision = read_model(Path(model)).digest
    return find_plain_rate(find_paths().bench_database, target, revision, asking.requests) or (None, None)


def _find_served(target: str, config: Config, asking: Asking) -> tuple[Served, str, str, bool]:
    """Returns what is served, its name and quantisation, and whether its files are here."""
    if asking.engine is not None and asking.engine not in names():
        raise WrongUse(f"there is no engine called `{asking.engine}`", next_step=f"choose one of {', '.join(names())}")
    if not _is_here(target, config):
        return (*_by_name(target, config, asking), False)
    wish = find_wish(target, config)
    if not wish.model:
        raise WrongUse(f"{target} runs a command, and nothing tells which model it serves", next_step="name the model")
    model = read_model(Path(wish.model))
    if asking.quantisation:
        model = msgspec.structs.replace(model, quantisation=asking.quantisation)
    chosen = asking.engine or (wish.engine if wish.engine in names() else None)
    served = served_of(model, chosen or (LLAMACPP if model.format == GGUF else USUAL_ENGINE))
    if served is None:
        raise WrongUse(f"{target} does not tell how many parameters it has", next_step="see what is missing: `stoker check`")
    return served, model.name, model.quantisation or "", True


def _find_draft(target: str, config: Config, asking: Asking, engine: str) -> tuple[Served | None, str]:
    """Returns the model that drafts and its name, where that is one of its own: what a person names, else the service's."""
    if asking.method != "draft":
        if asking.draft is not None:
            raise WrongUse("a draft is named, and nothing drafts with it", next_step="add --speculation draft")
        return None, ""
    if asking.draft is not None:
        own = msgspec.structs.replace(asking, quantisation=None, engine=engine)
        served, name, _, has_files = _find_served(asking.draft, config, own)
        if has_files:
            _check_no_head(asking.draft, config)
        return served, name
    if not _is_here(target, config):
        return None, ""
    draft = read_draft(msgspec.structs.replace(find_wish(target, config), speculation="draft"))
    served_draft = None if draft is None or head_kind(draft) != "draft" else served_of(draft, engine)
    return (served_draft, draft.name) if draft is not None and served_draft is not None else (None, "")


def _check_no_head(draft: str, config: Config) -> None:
    kind = head_kind(read_model(Path(find_wish(draft, config).model)))
    if kind != "draft":
        raise WrongUse(f"{draft} is a head, and no model of its own", next_step=f"say `--speculation {kind}`")


def _say_guess(draft: Served | None, name: str) -> str:
    if draft is None or not (draft.shape.is_guess or draft.layout.is_guess):
        return ""
    return f"how {name} is made or stored is not known: taken as usual (a name such as {name}-BF16 tells)"


def _is_here(target: str, config: Config) -> bool:
    if target in config.services or target == DEMO or Path(target).exists():
        return True
    return is_hub_name(target, Path.cwd()) and find_snapshot(target, os.environ) is not None


def _by_name(name: str, config: Config, asking: Asking) -> tuple[Served, str, str]:
    if name.startswith(("/", "./", "../", "~")) or name.endswith(f".{GGUF}"):
        stem = Path(name).name.removesuffix(f".{GGUF}")
        by_name = f"; `stoker predict {stem}` goes by the name alone" if find_shape(stem) else ""
        raise WrongUse(f"there is no file {name}", next_step=f"name one that is here{by_name}")
    shape = find_shape(name)
    if shape is None:
        otherwise = "name a folder or GGUF file, or write its size into the name, such as mine-27b or mine-35b-a3b"
        raise WrongUse(
            f"{name} is no service, no file, and no model that is known by name",
            why="neither the list of published models nor a size in the name tells how much a token has to read",
            next_step=service_hint(name, served_names(config), otherwise, "stoker predict"),
        )
    said = asking.quantisation or (name if read_quantisation(name) else "")
    engine = asking.engine or (LLAMACPP if GGUF in name.lower() else USUAL_ENGINE)
    return Served(shape, plan_layout(shape, said, engine, None), engine), name, asking.quantisation or ""


def _find_memory(asking: Asking, has_files: bool) -> tuple[str, MemoryOf, str]:
    """Returns the machine, its memory and what to say of it: this one where the files are here, else the one of the fit.

    The bandwidth is what a person says, what is known of the GPU, or what is measured of the processor.
    """
    machine = read_box(asking.box)
    memory = memory_of(machine)
    name = machine.gpus[0].name if machine.gpus else "a machine without a GPU"
    if asking.bandwidth_gb_s is not None:
        fitted = memory is not None and memory.fitted
        return name, MemoryOf(name, asking.bandwidth_gb_s, "as you said", fitted), ""
    if memory is not None:
        return name, memory, ""
    if asking.box == THIS and not has_files:
        note = "its files are not here; --on names another machine, --bandwidth 60 one with 60 GB/s"
        return known_memory()[0].gpu, known_memory()[0], f"not for this machine, since {note}"
    return name, _measured_memory(machine, name, asking.box), ""


def _measured_memory(machine: Machine, name: str, box: str) -> MemoryOf:
    """Returns the memory of this machine's processor as measured; raises WrongUse where that would tell nothing."""
    next_step = "say it (--bandwidth 60 for 60 GB/s), or predict for another machine (--on gb10)"
    if box != THIS or machine.gpus:
        raise WrongUse(f"the memory's bandwidth of {name} is not known", next_step=next_step)
    rate = measure_memory_rate(machine.memory.available_bytes)
    if rate is None:
        why = "less than 512 MiB are free, too little to measure beside the caches"
        raise WrongUse("the memory's bandwidth of this machine is not known", why=why, next_step=next_step)
    return MemoryOf(name, round(rate / GIGA, 1), "measured just now, as its processor reads it")


def _rates(asking: Asking) -> tuple[tuple[str, tuple[float, ...]], ...]:
    if asking.method is None:
        return ()
    if asking.accept_rates:
        return (("as given", asking.accept_rates),)
    if asking.accept_rate is not None:
        if asking.draft_tokens is None:
            raise WrongUse(
                "an accept rate says little without the number of draft tokens",
                next_step="add --draft-tokens, the number with which it was measured",
            )
        return (("as given", tuple(rates_from_mean(asking.accept_rate, asking.draft_tokens))),)
    rates = load_fit().first_rates
    return tuple(
        (content, tuple(usual_rates(asking.method, asking.draft_tokens, content, rates))) for content in ("code", "prose")
    )


def _drafted(asking: Asking, draft: Served | None) -> Drafting | None:
    found = _rates(asking)
    if asking.method is None or not found:
        return None
    rates = found[0][1]
    count = min(asking.draft_tokens or len(rates), len(rates))
    return Drafting(asking.method, count, expected_length(rates[:count]), model=draft)


def _memory_bytes(asking: Asking, has_files: bool) -> int:
    """Returns the memory of the machine that is predicted for, which is a GB10 where `_find_memory` says so."""
    machine = read_box(asking.box)
    if asking.box == THIS and not has_files and not machine.gpus and asking.bandwidth_gb_s is None:
        machine = read_box(FITTED)
    own = machine.gpus[0].memory_total_bytes if machine.gpus else None
    return own or machine.memory.total_bytes


def _parallel(target: str, config: Config) -> float:
    """Returns how many requests a service answers at once by its table; inf where nothing is said."""
    wish = config.services.get(target)
    return wish.parallel if wish is not None and wish.parallel else math.inf


def _habits(asking: Asking, most: float) -> tuple[Habits, ...]:
    if asking.users is None:
        return ()
    counts = sorted({1, *(2**power for power in range(1, 12) if 2**power < asking.users), asking.users})
    at_once = int(min(MOST_AT_ONCE, most))
    return tuple(
        Habits(count, asking.think_s, asking.prompt, asking.answer, min(asking.boxes, count), at_once) for count in counts
    )
