"""The tool families of `tools.toml`, and the many shapes in which a client may offer one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dialogue.draw import HERE, PLACEHOLDER, Draw
from dialogue.fields import sample, schema
from dialogue.frames import aside, frame_deed, frame_thing
from dialogue.records import Call, Json

# Families that could stand in for each other: when a request must find no tool, its whole group stays away.
GROUPS = (
    {"weather", "forecast", "air", "sunrise", "clock"},
    {"reminder", "alarm", "timer", "todo_add", "todo_list", "calendar_add", "calendar_list", "note", "shopping"},
    {"text_message", "email", "phone_call", "contact", "user_lookup"},
    {"lights", "brightness", "light_colour", "thermostat"},
    {"news", "recipe", "movie", "define", "restaurants", "hotels", "flights", "directions", "stock", "music"},
    {
        "read_file",
        "write_file",
        "list_files",
        "disk",
        "system_info",
        "service_status",
        "service_restart",
        "ping",
        "sql",
        "open_app",
    },
    {"calculator", "tip", "convert_unit", "convert_currency", "random_number", "dice"},
)
CATCH_ALL = {"web_search", "encyclopedia", "shell", "calculator"}
WHOLE_SHARE = 0.5
FREE_TEXT = ("message", "query")
PREFIXES = ("mcp", "api", "home", "tools", "my", "app")
ORDERS = (("type", "properties", "required"), ("type", "required", "properties"), ("properties", "required", "type"))


@dataclass(frozen=True)
class Field:
    """One parameter of a family: its possible names, kinds of value and descriptions."""

    key: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    about: tuple[str, ...]
    optional: bool = False
    free: bool = False


@dataclass(frozen=True)
class Family:
    """A tool in all its variants, with requests that need it and answers that use its result."""

    key: str
    names: tuple[str, ...]
    about: tuple[str, ...]
    fields: tuple[Field, ...]
    requests: tuple[str, ...]
    held_out: tuple[str, ...]
    deeds: tuple[str, ...]
    things: tuple[str, ...]
    result: Mapping[str, str]
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """A field as one offer shows it."""

    field: Field
    name: str
    kind: str
    required: bool


@dataclass(frozen=True)
class Offer:
    """A family dressed as one concrete tool."""

    family: Family
    name: str
    parameters: tuple[Parameter, ...]
    tool: Json


def parse_field(key: str, stored: Mapping[str, Any]) -> Field:
    """A field as written in the TOML file."""
    kinds = tuple(stored.get("kinds", (stored.get("kind"),)))
    names, about = stored["names"].split("|"), stored["about"].split("|")
    return Field(key, tuple(names), kinds, tuple(about), stored.get("optional", False), stored.get("free", False))


@cache
def families() -> tuple[Family, ...]:
    """All families of the file."""
    stored = tomllib.loads((HERE / "tools.toml").read_text(encoding="utf-8"))
    return tuple(
        Family(
            key=key,
            names=tuple(entry["names"].split("|")),
            about=tuple(entry["about"].split("|")),
            fields=tuple(parse_field(name, field) for name, field in entry.get("fields", {}).items()),
            requests=tuple(entry["requests"]),
            held_out=tuple(entry["held_out"]),
            deeds=tuple(entry["deeds"]),
            things=tuple(entry["things"]),
            result=entry.get("result", {}),
            answers=tuple(entry["answers"]),
        )
        for key, entry in stored.items()
    )


def rivals(key: str) -> set[str]:
    """Families that might also serve a request for this one."""
    return {other for group in GROUPS if key in group for other in group} | CATCH_ALL | {key}


def styled(draw: Draw, name: str) -> str:
    """A function name in one of the usual spellings."""
    words = name.split("_")
    style = draw.rng.random()
    if style < 0.68:
        return name
    if style < 0.84:
        return words[0] + "".join(map(str.capitalize, words[1:]))
    if style < 0.90:
        return "".join(map(str.capitalize, words))
    return name.replace("_", "-") if style < 0.95 else f"{draw.one(PREFIXES)}_{name}"


def choose_parameters(draw: Draw, family: Family) -> tuple[Parameter, ...]:
    """The fields that an offer shows, each with a name of its own."""
    taken: set[str] = set()
    chosen = []
    for field in family.fields:
        if field.optional and draw.chance(0.45):
            continue
        name = draw.one([n for n in field.names if n not in taken] or [field.key])
        taken.add(name)
        kind = draw.one(field.kinds)
        required = not field.optional or (kind.startswith("enum:") and draw.chance(0.15))
        chosen.append(Parameter(field, name, kind, required))
    return tuple(chosen)


def property_schema(draw: Draw, parameter: Parameter) -> Json:
    """One parameter's schema in one of the shapes that clients send."""
    parts = schema(parameter.kind)
    if parameter.field.free and draw.chance(0.8):
        parts.pop("enum", None)
    if parts["type"] == "integer" and draw.chance(0.15):
        parts["type"] = "number"
    if draw.chance(0.7):
        parts["description"] = draw.one(parameter.field.about)
    if draw.chance(0.1):
        parts["title"] = parameter.name.replace("_", " ").title()
    items = list(parts.items())
    if draw.chance(0.3):
        draw.rng.shuffle(items)
    return dict(items)


def shuffled(draw: Draw, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters in the order of the schema: their own, or now and then a random one."""
    return tuple(draw.rng.sample(parameters, len(parameters))) if draw.chance(0.4) else parameters


def object_schema(draw: Draw, parameters: tuple[Parameter, ...]) -> Json:
    """The schema of all parameters together."""
    parts: Json = {
        "type": "object",
        "properties": {p.name: property_schema(draw, p) for p in parameters},
        "required": [p.name for p in parameters if p.required],
    }
    if not parts["required"] and draw.chance(0.6):
        del parts["required"]
    parts = {key: parts[key] for key in draw.one(ORDERS) if key in parts}
    if draw.chance(0.2):
        parts["additionalProperties"] = False
    return parts


def offer(draw: Draw, family: Family) -> Offer:
    """One concrete tool of a family."""
    parameters = shuffled(draw, choose_parameters(draw, family))
    function: Json = {"name": styled(draw, draw.one(family.names))}
    if draw.chance(0.93):
        about = draw.one(family.about)
        function["description"] = about if draw.chance(0.8) else about.rstrip(".") + draw.one((".", ""))
    if parameters or draw.chance(0.7):
        function["parameters"] = object_schema(draw, parameters)
    return Offer(family, function["name"], parameters, {"type": "function", "function": function})


def fitting(draw: Draw, offered: Offer) -> list[str]:
    """The requests that this offer can serve: they name every required field and no absent one."""
    shown = {p.field.key for p in offered.parameters}
    needed = {p.field.key for p in offered.parameters if p.required and not p.field.optional}
    return [r for r in forms(draw, offered.family) if needed <= set(PLACEHOLDER.findall(r)) <= shown]


def open_ended(family: Family, request: str) -> bool:
    """Whether a request ends in free text without a quotation mark."""
    last = PLACEHOLDER.findall(request.rstrip(".?!")[-12:])
    return request.rstrip(".?!").endswith("}") and any(
        f.key == last[-1] and f.kinds[0] in FREE_TEXT for f in family.fields if last
    )


def forms(draw: Draw, family: Family) -> tuple[str, ...]:
    """All requests of one sort: whole ones, or framed deeds and things."""
    if draw.chance(WHOLE_SHARE) and family.requests:
        return family.held_out if draw.held_out else family.requests
    deeds = [frame_deed(draw, deed, open_ended(family, deed)) for deed in family.deeds]
    return (*deeds, *(frame_thing(draw, thing, open_ended(family, thing)) for thing in family.things))


def politely(draw: Draw, text: str, starts_with_value: bool, open_end: bool) -> str:
    """The request with the small differences that people make; a value at its start keeps its spelling."""
    if not starts_with_value:
        text = (text[0].lower() if draw.chance(0.12) else text[0].upper()) + text[1:]
    if draw.chance(0.12):
        text = draw.one(("Hi, ", "Hey, ", "Hello! ", "Ok, ", "Please: ", "Quick question: ", "One more thing: ")) + text
    if draw.chance(0.06):
        text = text.rstrip(".?")
    if draw.chance(0.15):
        return aside(draw, text, first=open_end)
    return text + draw.one((" Thanks.", " Thank you!", " Thanks!")) if not open_end and draw.chance(0.05) else text


def ask(draw: Draw, offered: Offer) -> tuple[str, Call] | None:
    """A request for this tool and the call that answers it; None when no request fits the offer."""
    requests = fitting(draw, offered)
    if not requests:
        return None
    request = draw.one(requests)
    named = set(PLACEHOLDER.findall(request))
    arguments: Json = {}
    said: dict[str, str] = {}
    # llama.cpp's grammar asks for this order: what is required first, each part as in the schema.
    for parameter in sorted(offered.parameters, key=lambda p: not p.required):
        if parameter.field.key in named:
            value = sample(draw, parameter.kind)
            said[parameter.field.key], arguments[parameter.name] = value.said, value.written
        elif parameter.required:
            arguments[parameter.name] = schema(parameter.kind)["enum"][0]
    text = re.sub(r"\b(\w+) s\b", r"\1s", draw.phrase(request, said))
    text = politely(draw, text, request.startswith("{"), open_ended(offered.family, request))
    return text, Call(offered.name, arguments, said | {"said": next(iter(said.values()), "")})
