"""How services are, what they say, what they can do, and how fast they are."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from stoker.box import clock_s
from stoker.mcp.brief import first, plain, untrusted
from stoker.mcp.desk import Desk
from stoker.mcp.tool import Arguments, OneBox, Tool, named
from stoker.records import CellChange, CheckResult, FigureChange, ServiceView, StatusView, Verdict, Verification

MOST_SERVICES, MOST_CHECKS, MOST_CELLS = 20, 12, 8
TAIL_LINES = 5000
OneService = Annotated[str | None, msgspec.Meta(description="A service's name; may be left out where it is clear which.")]


class Status(Arguments, frozen=True):
    """Of which service."""

    service: Annotated[str | None, msgspec.Meta(description="One service; left out: all of them.")] = None
    box: OneBox = None


class Logs(Arguments, frozen=True):
    """Which lines of which log."""

    service: Annotated[str | None, msgspec.Meta(description="A service's name; left out: the one that spoke last.")] = None
    lines: Annotated[int, msgspec.Meta(description="How many of the last lines.", ge=1, le=100)] = 40
    containing: Annotated[str | None, msgspec.Meta(description="Only lines with this text.")] = None
    box: OneBox = None


class Verify(Arguments, frozen=True):
    """What is asked of which service."""

    service: OneService = None
    probes: Annotated[tuple[str, ...], msgspec.Meta(description="Only these probes.", max_length=30)] = ()
    last: Annotated[bool, msgspec.Meta(description="Ask nothing; tell what was found the last time.")] = False
    budget_s: Annotated[float, msgspec.Meta(description="Stop asking after so many seconds.", ge=1, le=120)] = 60.0


class Compare(Arguments, frozen=True):
    """Two kept runs."""

    a: Annotated[str, msgspec.Meta(description="A run's number, `last`, or `published:NAME`.", max_length=200)]
    b: Annotated[str, msgspec.Meta(description="The run beside it.", max_length=200)] = "last"


def service_status(desk: Desk, asked: Status) -> object:
    """Tells the states."""
    from stoker.errors import WrongUse, service_hint
    from stoker.flows.status import read_status

    if asked.box is None:
        status = read_status(desk.paths)
    else:
        from stoker.flows.boxes.linked import find_linked

        status = find_linked(desk.paths, asked.box).status()
    known, place = {one.name: one.model for one in status.services}, f"of {asked.box}" if asked.box else "here"
    if asked.service is not None and asked.service not in known:
        why = f"services {place}: {', '.join(known) or 'none'}"
        raise WrongUse(
            f"there is no service called `{asked.service}`", why=why, next_step=service_hint(asked.service, known, "")
        )
    shown = [_service(one) for one in status.services if asked.service in (None, one.name)]
    return {
        "box": asked.box, "daemon_runs": status.daemon.running, "gateway": status.gateway.url if asked.box is None else None,
        **first(shown, MOST_SERVICES, "services"), **_linked(asked, status),
    }  # fmt: skip


def _linked(asked: Status, status: StatusView) -> dict[str, Any]:
    """Returns the linked boxes, for who asked of everything here."""
    if asked.box is not None or asked.service is not None or status.boxes is None:
        return {}
    boxes = [
        {
            "box": one.name, "is_here": one.is_here, "for_s": round(max(0.0, clock_s() - one.since)),
            "why": untrusted(one.why) if one.why else "",
            "services": [{"name": of.service, "state": of.state} for of in one.replicas[:MOST_SERVICES]],
        } for one in status.boxes.boxes
    ]  # fmt: skip
    return first(boxes, MOST_SERVICES, "boxes")


def _service(view: ServiceView) -> dict[str, Any]:
    return {
        "name": view.name, "model": view.model, "engine": view.engine, "engine_version": view.engine_version,
        "state": view.state, "for_s": round(max(0.0, clock_s() - view.since)), "why": untrusted(view.why),
        "awaits": view.awaits, "address": view.address, "memory_bytes": view.memory_bytes,
        "memory_need_bytes": view.memory_need_bytes, "restarts": view.restarts or None, "plan_id": view.plan_id,
        "warnings": [plain(one) for one in view.warnings],
    }  # fmt: skip


def service_logs(desk: Desk, asked: Logs) -> object:
    """Reads the last lines."""
    from stoker.flows.logs import find_log, read_tail

    most = TAIL_LINES if asked.containing else asked.lines
    if asked.box is not None:
        from stoker.flows.boxes.linked import find_linked

        name = named(asked.service)
        lines = find_linked(desk.paths, asked.box, act=True).tail(name, most)
    else:
        log = find_log(desk.paths, asked.service)
        name, lines = log.stem, read_tail(log, most)
    found = [line for line in lines if asked.containing is None or asked.containing.lower() in line.lower()]
    shown = [plain(line) for line in found[-asked.lines :]]
    return {"box": asked.box, "service": name, "untrusted_lines": shown, "of_lines": len(lines)}


def verify_service(desk: Desk, asked: Verify) -> object:
    """Asks a service what its clients will ask."""
    from stoker.flows import verify as flow
    from stoker.flows.targets import choose_service, target_of_service

    if asked.last:
        return verification_view(flow.read_last(desk.paths, asked.service).verification)
    service = choose_service(desk.paths, asked.service)
    probes = flow.choose_probes(asked.probes, (), deep=False)
    found = flow.verify(target_of_service(desk.paths, service), probes, (), asked.budget_s, lambda _result: None)
    flow.keep(desk.paths, service, (), found)
    return verification_view(found)


def verification_view(found: Verification) -> dict[str, Any]:
    """Returns the verdicts, and of what did not pass what was found; replies of the model are left out."""
    checks = [(probe.name, check) for probe in found.probes for check in probe.checks]
    bad = [_check(*one) for one in checks if one[1].verdict in (Verdict.FAIL, Verdict.DEGRADED, Verdict.UNKNOWN)]
    return {
        "model": found.model, "verdict": found.verdict, "in_time": found.in_time, "took_s": round(found.took_s, 1),
        "probes": {probe.name: probe.verdict for probe in found.probes}, **first(bad, MOST_CHECKS, "not_passed"),
    }  # fmt: skip


def _check(probe: str, check: CheckResult) -> dict[str, Any]:
    told = {"probe": probe, "check": check.name, "verdict": check.verdict}
    return told | {"says": untrusted(check.says), "mend": plain(check.mend)}


def bench_compare(desk: Desk, asked: Compare) -> object:
    """Compares two kept runs."""
    from stoker.flows.bench_runs import compare_runs

    compared = compare_runs(desk.paths, asked.a, asked.b, all_figures=False)
    return {
        "differences": compared.differences, "warnings": compared.warnings,
        "overall": [_figure(one) for one in compared.overall],
        **first([_cell(one) for one in compared.cells], MOST_CELLS, "cells"),
        "only_a": len(compared.only_a) or None, "only_b": len(compared.only_b) or None,
    }  # fmt: skip


def _cell(cell: CellChange) -> dict[str, Any]:
    return {"cell": cell.cell, "figures": [_figure(one) for one in cell.figures], "warnings": cell.warnings}


def _figure(one: FigureChange) -> dict[str, Any]:
    interval = [one.low, one.high] if one.low is not None else None
    return {"name": one.name, "a": one.a, "b": one.b, "ratio": one.ratio, "interval": interval, "verdict": one.verdict}


TOOLS = (
    Tool(
        "service_status", "What runs, and why",
        "Each service's state, since when, why, what it waits for, and its memory. Only READY ones answer.",
        Status, service_status,
    ),
    Tool(
        "service_logs", "What an engine said",
        "The last lines of a service's engine, without secrets. Ask diagnose_service first: it knows what they mean.",
        Logs, service_logs,
    ),
    Tool(
        "verify_service", "Does it do what clients ask",
        "Asks a running service for tokens, streams, tools, thinking and more, and judges the answers; takes up to a minute "
        "of the model's time. `last` tells what was found before, at once.", Verify, verify_service,
    ),
    Tool(
        "bench_compare", "Is it faster or slower",
        "Compares two kept benchmark runs: what differs between them, how much each figure changed, and whether that may be "
        "chance. `last` is the newest.", Compare, bench_compare,
    ),
)  # fmt: skip
