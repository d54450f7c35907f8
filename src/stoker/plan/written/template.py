"""The three ways in which recipes put values into commands; what cannot be filled in stays, and is told."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from stoker.records import Recipe

MOST_ROUNDS = 20
MOST_CHARACTERS = 200_000
PLACE = re.compile(r"\{(\w+)\}")
MACRO = re.compile(r"\$\{([\w.-]+)\}")
# What a writer leaves for a person to fill in. A shell would take its brackets for redirections, so they are put aside.
BLANK = re.compile(r"<([A-Za-z][\w ./:-]{0,60}\w)>")
ASIDE = {"<": "\ue000", ">": "\ue001"}  # characters for private use, which no text has


class Filled(NamedTuple):
    """A text with its values filled in, and sentences on what could not be."""

    text: str
    said: tuple[str, ...] = ()


def fill_repeatedly(template: str, values: Mapping[str, str]) -> Filled:
    """Fills `{key}` until nothing changes, as sparkrun does: JSON keeps its single braces, an unknown key stays."""
    text = template
    for _ in range(MOST_ROUNDS):
        if len(text) + sum(len(values.get(key, "")) for key in PLACE.findall(text)) > MOST_CHARACTERS:
            return Filled(template, ("a value of the template holds itself again and again: nothing was filled in",))
        before, text = text, PLACE.sub(lambda found: values.get(found[1], found[0]), text)
        if text == before:
            return Filled(text, _unknown(PLACE.findall(text)))
    return Filled(text, ("values of the template stand for each other in a circle",))


def fill_once(template: str, values: Mapping[str, str]) -> Filled:
    """Fills `{key}` once and halves doubled braces, as Python's `str.format` does; an unknown key stays."""
    pieces: list[str] = []
    unknown: list[str] = []
    try:
        for before, key, form, conversion in string.Formatter().parse(template):
            pieces.append(before)
            if key is None:
                continue
            plain = not form and not conversion
            if plain and key in values:
                pieces.append(values[key])
            else:
                unknown.append(key)
                pieces.append("{" + key + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "") + "}")
    except ValueError as problem:
        return Filled(template, (f"the command's braces do not pair ({problem}), so its runner would refuse it",))
    return Filled("".join(pieces), _unknown(unknown))


def fill_macros(text: str, macros: dict[str, str]) -> Filled:
    """Fills `${name}` as llama-swap does: each macro once, the last declared first, so one may use those before it."""
    filled = text
    for name, value in reversed(macros.items()):
        place = "${" + name + "}"
        if len(filled) + filled.count(place) * len(value) > MOST_CHARACTERS:
            return Filled(text, ("its macros swell beyond all measure: nothing was filled in",))
        filled = filled.replace(place, value)
    left = dict.fromkeys(MACRO.findall(filled))
    return Filled(filled, tuple(_say_macro(name) for name in left))


def blanks(text: str) -> tuple[str, ...]:
    """Returns a sentence for each `<blank>` that the writer left for a person to fill in."""
    return tuple(f"`<{name}>` is for you to fill in" for name in dict.fromkeys(BLANK.findall(text)))


def mask_blanks(text: str) -> str:
    """Returns shell text in which blanks are words like others."""
    return BLANK.sub(lambda found: ASIDE["<"] + found[1] + ASIDE[">"], text)


def unmask_blanks(recipe: Recipe) -> Recipe:
    """Returns what was read of such a text with the blanks as they were written."""
    text = msgspec.json.encode(recipe).decode()
    for bracket, aside in ASIDE.items():
        text = text.replace(aside, bracket)
    return msgspec.json.decode(text, type=Recipe)


def _unknown(keys: list[str]) -> tuple[str, ...]:
    return tuple(f"`{{{key}}}` has no value in the recipe and stays as it is" for key in dict.fromkeys(keys))


def _say_macro(name: str) -> str:
    if name.startswith("env."):
        return f"`${{{name}}}` comes from the environment of llama-swap, which is not in the file"
    return f"`${{{name}}}` is a macro that nothing declares: llama-swap refuses the file"
