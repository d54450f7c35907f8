"""Whether a model on disk is whole: what it is, which engines load it, what is missing and where that comes from."""

from __future__ import annotations

from pathlib import Path

from stoker.engines import find, names
from stoker.facts.model.read import read_model
from stoker.records import Model, Record


class CheckView(Record, frozen=True):
    """A model, the engines that load what its files are complete for, and whether anything is wrong with it."""

    model: Model
    loads_in: tuple[str, ...]
    is_whole: bool


def check_model(path: Path) -> CheckView:
    """Returns what is known of a model's files; raises Refused where nothing of it can be read."""
    model = read_model(path)
    layouts = {"gguf"} if model.format == "gguf" else set(model.layouts)
    loads_in = tuple(name for name in names() if layouts & set(find(name).layouts))
    return CheckView(model, loads_in, bool(loads_in) and not model.missing and not model.problems)
