"""Requests for a Python function, answered with one."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from dialogue.draw import HERE, Draw, sentences
from dialogue.records import Exchange

PARAMETERS = {
    "x": ("n", "a", "x", "number", "value"),
    "y": ("b", "y", "m", "other", "second"),
    "s": ("text", "s", "string", "word", "name"),
    "l": ("numbers", "items", "values", "data", "xs"),
    "p": ("path", "filename", "file_name"),
    "d": ("mapping", "d", "table"),
}
ASK = sentences("coding", "ask")
SUBJECTS = ("numbers", "values", "items")
FILTERS = (
    ("even", "{v} % 2 == 0"),
    ("odd", "{v} % 2 == 1"),
    ("positive", "{v} > 0"),
    ("negative", "{v} < 0"),
    ("non-zero", "{v} != 0"),
)
MAPPINGS = (
    ("squares", "{v} ** 2"),
    ("cubes", "{v} ** 3"),
    ("doubles", "{v} * 2"),
    ("halves", "{v} / 2"),
    ("negatives", "-{v}"),
)


@cache
def tasks() -> list[dict[str, Any]]:
    """The functions of `code.toml`."""
    stored: list[dict[str, Any]] = tomllib.loads((HERE / "code.toml").read_text(encoding="utf-8"))["task"]
    return stored


def indented(body: str) -> str:
    """A function's body."""
    return "\n".join("    " + line for line in body.split("\n"))


def fenced(code: str) -> str:
    """Code as a chat shows it."""
    return f"```python\n{code}\n```"


def listed(draw: Draw) -> Exchange:
    """A list comprehension from a random filter and mapping."""
    (kind, test), (image, expression) = draw.one(FILTERS), draw.one(MAPPINGS)
    items, v = draw.one(PARAMETERS["l"]), draw.one(("n", "value", "x", "item"))
    does = f"returns the {image} of the {kind} {draw.one(SUBJECTS)} in a list"
    name = f"{kind.replace('-', '_')}_{image}" if draw.chance(0.6) else draw.invented()
    question = draw.phrase(draw.one(ASK), {"does": does, "f": name})
    name = name if name in question else f"{kind.replace('-', '_')}_{image}"
    code = f"def {name}({items}):\n    return [{expression.format(v=v)} for {v} in {items} if {test.format(v=v)}]"
    return Exchange(question, fenced(code), f"I filter the {kind} ones and take their {image}.")


def written(draw: Draw) -> Exchange:
    """One of the known functions, with names of its own."""
    task = draw.one(tasks())
    usual = task["names"].split("|")
    name = draw.one(usual) if draw.chance(0.7) else f"{draw.invented()}_{draw.one(usual)}"
    does = draw.one(task["does"])
    question = draw.phrase(draw.one(ASK), {"does": does, "f": name})
    name = name if name in question else usual[0]
    chosen = {key: PARAMETERS[key][0] for key in task["args"]}
    if "xy" in task["args"]:
        chosen = {"x": "a", "y": "b"}
    body = task["body"].format(**chosen)
    lines = [f"def {name}({', '.join(chosen.values())}):", indented(body)]
    if "first" in task:
        lines[:0] = [task["first"], "", ""]
    return Exchange(question, fenced("\n".join(lines)), f"The function {does}. I write it in Python.")


def coding(draw: Draw) -> Exchange:
    """One request for code."""
    return listed(draw) if draw.chance(0.25) else written(draw)
