"""Why an engine failed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from stoker.errors import WrongUse
from stoker.mcp.brief import first, log_lines, untrusted
from stoker.mcp.desk import Desk
from stoker.mcp.tool import Arguments, OneBox, Tool, named
from stoker.records import Cause, Diagnosis
from stoker.written_paths import is_there

MOST_FINDINGS, MOST_LINES = 4, 4
TEXT_LETTERS = 1_000_000
Short = Annotated[str, msgspec.Meta(max_length=20_000)]
Service = Annotated[str | None, msgspec.Meta(description="A service's name; left out: the one that spoke last.")]
Context = Annotated[
    Short | None, msgspec.Meta(description="The launch command, or the machine (`DGX Spark`), where a log alone is at hand.")
]
LogFile = Annotated[Short | None, msgspec.Meta(description="The whole path of a log file.")]
LogText = Annotated[
    Annotated[str, msgspec.Meta(max_length=TEXT_LETTERS)] | None,
    msgspec.Meta(description="The log itself, if it is no file."),
]


class OfService(Arguments, frozen=True):
    """Whose log is read."""

    service: Service = None
    context: Context = None
    box: OneBox = None


class OfLog(Arguments, frozen=True):
    """Which log is read: a file or a text."""

    file: LogFile = None
    text: LogText = None
    context: Context = None


class OfEngine(Arguments, frozen=True):
    """Which log of a known engine is read: a service's, a file or a text."""

    service: Service = None
    file: LogFile = None
    text: LogText = None
    context: Context = None


def diagnose_service(desk: Desk, asked: OfService) -> object:
    """Reads a service's log."""
    from stoker.flows import diagnose

    if asked.box is not None:
        from stoker.flows.boxes.linked import find_linked

        if asked.context is not None:
            raise WrongUse("that box knows its own launch and machine", next_step="leave `context` out, or `box`")
        told = find_linked(desk.paths, asked.box, act=True).diagnosis(named(asked.service))
        return {"box": asked.box, **brief(told)}
    return brief(diagnose.diagnose_service(desk.paths, asked.service, asked.context))


def diagnose_log(_desk: Desk, asked: OfLog) -> object:
    """Reads a file or a text."""
    return brief(_read(asked.file, asked.text, asked.context))


def _of_engine(desk: Desk, asked: OfEngine, engine: str) -> object:
    if (asked.file or asked.text) and asked.service:
        raise WrongUse("name a service, a file or a text, not several")
    if asked.file or asked.text:
        told = _read(asked.file, asked.text, asked.context)
    else:
        from stoker.flows import diagnose

        told = diagnose.diagnose_service(desk.paths, asked.service, asked.context)
    if told.engine not in (None, engine):
        raise WrongUse(
            f"this is a log of {told.engine}, not of {engine}", next_step="ask diagnose_service or diagnose_log about it"
        )
    return brief(told)


def diagnose_sglang(desk: Desk, asked: OfEngine) -> object:
    """Reads SGLang's log."""
    return _of_engine(desk, asked, "sglang")


def diagnose_vllm(desk: Desk, asked: OfEngine) -> object:
    """Reads vLLM's log."""
    return _of_engine(desk, asked, "vllm")


def _read(file: str | None, text: str | None, context: str | None) -> Diagnosis:
    import io

    from stoker.flows.diagnose import diagnose_log, diagnose_source, read_context

    if (file is None) == (text is None):
        raise WrongUse("name a file or give a text, one of them")
    if text is not None:
        return diagnose_source(io.BytesIO(text.encode(errors="replace")), "text", read_context(context))
    path = Path(file or "")
    is_file = is_there(path) and path.is_file()  # a pipe would never end, and `-` is where this session comes from
    if not path.is_absolute() or not is_file:
        raise WrongUse(f"{file} is no file with a whole path", next_step="give its whole path, or its text")
    return diagnose_log(str(path), context)


def brief(told: Diagnosis) -> dict[str, Any]:
    """Returns a diagnosis in a size that suits a small model: the first findings, with the lines that prove them."""
    return {
        "source": told.source, "engine": told.engine, "version": told.version, "lines": told.lines,
        "said_it_is_ready": told.ready, "is_explained": any(one.confidence != "possible" for one in told.findings),
        **first([_cause(one) for one in told.findings], MOST_FINDINGS, "findings"),
        "harmless": [{"rule": one.rule, "title": one.title} for one in told.noise[:MOST_LINES]],
        "unknown": log_lines(told.unknown, MOST_LINES * 2), "collect": told.collect,
    }  # fmt: skip


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "rule": cause.rule, "title": cause.title, "confidence": cause.confidence, "standing": cause.standing,
        "cause": cause.cause, "fix": cause.fix, "use": cause.use, "drop": cause.drop,
        "command": untrusted(cause.command) if cause.command else None, "hangs_on": cause.hangs_on,
        "evidence": log_lines(cause.evidence, MOST_LINES), "sources": cause.sources[:2],
    }  # fmt: skip


SAYS = (
    "Tells why {what} failed, from its log: the cause before what follows from it, how sure that is (certain, likely, "
    "possible), the lines that prove it, the fix as changed flags. `is_explained` false: nobody knows; say so, and collect "
    "what `collect` names. Never guess flags beyond the fix."
)
TOOLS = (
    Tool("diagnose_service", "Why a service failed", SAYS.format(what="a service of Stoker"), OfService, diagnose_service),
    Tool("diagnose_log", "Why a log ends badly", SAYS.format(what="any engine"), OfLog, diagnose_log),
    Tool("diagnose_sglang", "Why SGLang failed", SAYS.format(what="SGLang"), OfEngine, diagnose_sglang),
    Tool("diagnose_vllm", "Why vLLM failed", SAYS.format(what="vLLM"), OfEngine, diagnose_vllm),
)
