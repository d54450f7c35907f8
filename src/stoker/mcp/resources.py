"""What an agent can read by an address: rules, plans, reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from stoker.config import Paths
from stoker.errors import WrongUse
from stoker.mcp.brief import as_answer

SCHEME = "stoker://"
JSON = "application/json"


class Kind(NamedTuple):
    """One kind of resource: its addresses begin with `stoker://PLACE/`, and `read` returns what is at one."""

    place: str
    name: str
    says: str
    read: Callable[[Paths, str], object]
    list: Callable[[Paths], Iterator[str]]


def list_resources(paths: Paths) -> list[dict[str, Any]]:
    """Returns what is there; of the rules only their list, since they are hundreds."""
    listed = [{"uri": f"{SCHEME}rules", "name": "rules", "title": "All rules, a line each", "mimeType": JSON}]
    for kind in KINDS:
        for one in kind.list(paths):
            uri = f"{SCHEME}{kind.place}/{one}"
            listed.append({"uri": uri, "name": f"{kind.name} {one}", "title": kind.says, "mimeType": JSON})
    return listed


def list_templates() -> list[dict[str, Any]]:
    """Returns the forms of the addresses."""
    return [
        {"uriTemplate": f"{SCHEME}{one.place}/{{name}}", "name": one.name, "title": one.says, "mimeType": JSON}
        for one in KINDS
    ]


def read_resource(paths: Paths, uri: str) -> list[dict[str, str]]:
    """Returns the contents at an address; raises WrongUse where there is nothing."""
    place = unquote(uri.removeprefix(SCHEME)).strip("/")
    kind = next((one for one in KINDS if place.startswith(f"{one.place}/")), None)
    if uri.startswith(SCHEME) and place == "rules":
        found: object = _all_rules()
    elif uri.startswith(SCHEME) and kind is not None:
        found = kind.read(paths, place.removeprefix(f"{kind.place}/"))
    else:
        raise WrongUse(f"there is no resource {uri}", next_step="resources/list and resources/templates/list name them")
    return [{"uri": uri, "mimeType": JSON, "text": msgspec.json.encode(as_answer(found)).decode()}]


def _all_rules() -> object:
    from stoker.rules.load import load_rules

    return {"rules": {rule.id: rule.title for rule in load_rules()}}


def _rule(_paths: Paths, name: str) -> object:
    from stoker.rules.load import find_rule

    return find_rule(name)


def _plan(paths: Paths, name: str) -> object:
    from stoker.plan.report import report_without_secrets
    from stoker.records import Report
    from stoker.store.services import read_saved

    plans = {saved.plan.service: saved.plan for saved in read_saved(paths.database)}
    if name not in plans:
        raise WrongUse(f"no plan of `{name}` is kept", why=f"kept are: {', '.join(plans) or 'none'}")
    return report_without_secrets(Report(plans[name], None)).plan


def _planned(paths: Paths) -> Iterator[str]:
    from stoker.store.services import read_saved

    return (saved.plan.service for saved in read_saved(paths.database))


def _verified(paths: Paths, name: str) -> object:
    from stoker.flows.verify import read_last
    from stoker.mcp.tools.looking import verification_view

    kept = read_last(paths, name)
    told = {"service": kept.service, "plan_id": kept.plan_id, "occasion": kept.occasion, "begun": kept.verification.begun}
    return told | verification_view(kept.verification)


def _all_verified(paths: Paths) -> Iterator[str]:
    from stoker.store.verifications import read_verified

    return iter(read_verified(paths.database))


def _bench(paths: Paths, name: str) -> object:
    from stoker.flows.bench_runs import find_run

    run = find_run(paths, name).run
    cells = [{"cell": one.cell, "figures": one.figures} for one in run.cells]
    return {"subject": run.subject, "began_at": run.began_at, "tool": run.tool, "note": run.note, "cells": cells}


def _all_benches(paths: Paths) -> Iterator[str]:
    from stoker.flows.bench_runs import list_runs

    return (str(one.id) for one in list_runs(paths)[:20])


KINDS = (
    Kind("rules", "rule", "A rule with its evidence", _rule, lambda _paths: iter(())),
    Kind("plans", "plan", "The plan by which a service runs, or ran last", _plan, _planned),
    Kind("reports/verify", "verification", "What a service was found to do, the last time", _verified, _all_verified),
    Kind("reports/bench", "benchmark", "A kept benchmark run", _bench, _all_benches),
)
