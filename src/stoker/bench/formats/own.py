"""Our own form: the whole run as JSON, with its requests, as `stoker bench` leaves it where a disk took no more."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.bench.formats.strict import refusal
from stoker.records import BenchRun

FORM = "stoker bench 1"


def render_own(run: BenchRun) -> str:
    """Returns the run as JSON."""
    return msgspec.json.format(
        msgspec.json.encode({"form": FORM, "run": msgspec.structs.replace(run, id=None)}), indent=1
    ).decode()


def read_own(raw: dict[str, Any], name: str) -> BenchRun:
    """Returns a run that was rendered so; raises WrongUse with the place of what is wrong."""
    if raw["form"] != FORM:
        raise refusal(name, "$.form", f"it is {raw['form']!r}, and this Stoker knows {FORM!r}", "upgrade Stoker")
    try:
        return msgspec.convert(raw.get("run"), BenchRun)
    except msgspec.ValidationError as problem:
        raise refusal(name, "$.run", str(problem)) from problem
