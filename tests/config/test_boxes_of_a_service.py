"""`boxes`, `split` and `executor` of a service: what is understood, and what is an error that names its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stoker.config import parse_config
from stoker.errors import WrongUse
from support import fails


def parse(**keys: Any) -> Any:
    return parse_config({"service": {"coder": {"model": "/models/a", **keys}}}, "/etc/stoker.toml").services["coder"]


def test_boxes_are_names_or_files_that_begin_at_the_configuration() -> None:
    wish = parse(boxes=["a", "facts/b.json", "~/c.json"], split="tensor", executor="ray")
    assert wish.boxes == ("a", "/etc/facts/b.json", str(Path("~/c.json").expanduser()))
    assert (wish.split, wish.executor) == ("tensor", "ray")


def test_a_service_that_says_nothing_is_of_one_box() -> None:
    assert (parse().boxes, parse().split, parse().executor) == ((), "auto", "mp")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"boxes": ["a"]}, "`service.coder.boxes` names one box"),
        ({"boxes": ["a", "b", "a"]}, "`service.coder.boxes` names `a` more than once"),
        ({"boxes": ["a", " "]}, "`service.coder.boxes`"),
        ({"boxes": "ab"}, "`service.coder.boxes`"),
        ({"split": "tensor"}, "`service.coder.split` is for a model that boxes share"),
        ({"executor": "ray"}, "`service.coder.executor` is for a model that boxes share"),
        ({"head_address": "10.0.0.1"}, "`service.coder.head_address` is for a model that boxes share"),
        ({"boxes": ["a", "b"], "head_address": "--headless"}, "`--headless`, which is no IPv4 address"),
        ({"boxes": ["a", "b"], "split": "halves"}, "`service.coder.split`"),
        ({"boxes": ["a", "b"], "executor": "mpi"}, "`service.coder.executor`"),
        ({"boxes": ["a", "b"], "engine": "command"}, 'has engine = "command"'),
        ({"box": ["a", "b"]}, "unknown key `service.coder.box`"),
    ],
)
def test_what_cannot_be_meant_is_an_error_with_its_path(keys: dict[str, Any], said: str) -> None:
    with fails(WrongUse, said):
        parse(**keys)
