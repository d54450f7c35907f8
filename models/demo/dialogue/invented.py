"""Tools that nobody has seen before, so that the model must read what it is offered."""

from __future__ import annotations

from dialogue.draw import Draw, sentences
from dialogue.families import Family, Field

VERBS = [
    "get",
    "find",
    "check",
    "start",
    "stop",
    "create",
    "delete",
    "update",
    "list",
    "show",
    "count",
    "send",
    "open",
    "close",
    "move",
    "copy",
    "rename",
    "measure",
    "print",
    "order",
    "cancel",
    "book",
    "reserve",
    "feed",
    "water",
    "paint",
    "repair",
    "inspect",
    "scan",
    "sort",
    "pack",
    "ship",
    "weigh",
    "polish",
    "label",
    "lift",
    "lower",
    "charge",
    "release",
    "collect",
    "rate",
    "tag",
    "archive",
    "assign",
    "approve",
    "reject",
    "publish",
    "merge",
    "clone",
    "fetch",
    "store",
    "reset",
    "lock",
    "mute",
    "pause",
    "resume",
]
PARAMETERS = (
    ("name", "person"),
    ("name", "word"),
    ("id", "id"),
    ("city", "city"),
    ("amount", "amount"),
    ("count", "int:1:99"),
    ("level", "int:0:10"),
    ("color", "colour"),
    ("date", "date"),
    ("time", "time"),
    ("owner", "person"),
    ("code", "id"),
    ("size", "int:1:500"),
    ("label", "word"),
    ("place", "city"),
    ("room", "room"),
    ("target", "word"),
    ("material", "thing"),
    ("note", "message"),
    ("weight", "amount"),
    ("email", "email"),
    ("path", "path"),
    ("number", "int:1:9999"),
    ("animal", "animal"),
    ("language", "language"),
    ("host", "host"),
    ("priority", "enum:low,medium,high"),
    ("mode", "enum:fast,slow,auto"),
    ("size", "enum:small,medium,large"),
    ("state", "enum:on,off"),
    ("day", "weekday"),
    ("month", "month"),
    ("dish", "dish"),
    ("topic", "topic"),
    ("quality", "enum:low,high,best"),
)
AFFIXES = ("", "", "", "", "target_", "item_", "the_", "new_", "my_")
OPENINGS = ("{verb} the {noun}", "{verb} the {noun}", "{verb} a {noun}", "{verb} {noun}", "{verb} this {noun}")
LINKS = sentences("invented", "links")
SIMPLE_LINKS = {
    "name": "called {name}",
    "city": "in {city}",
    "place": "at {place}",
    "owner": "for {owner}",
    "date": "on {date}",
    "time": "at {time}",
    "room": "in the {room}",
    "day": "on {day}",
    "note": 'with the note "{note}"',
    "color": "in {color}",
}


def noun_of(draw: Draw) -> str:
    """What an invented tool works on."""
    choice = draw.rng.random()
    if choice < 0.35:
        return draw.value("thing")
    if choice < 0.5:
        return draw.value("animal")
    return draw.invented() if choice < 0.8 else f"{draw.invented()} {draw.value('thing')}"


def link(draw: Draw, key: str, name: str) -> str:
    """The part of a request that names one parameter."""
    if key in SIMPLE_LINKS and draw.chance(0.5):
        return SIMPLE_LINKS[key]
    return draw.one(LINKS).format(name=name.replace("_", " "), key=key)


def invent(draw: Draw) -> Family:
    """A family with one made-up tool."""
    verb, noun = draw.one(VERBS), noun_of(draw)
    picked = draw.rng.sample(PARAMETERS, draw.one((0, 1, 1, 1, 2, 2, 3)))
    picked = list({key: (key, kind) for key, kind in picked}.values())
    fields = [
        Field(key, (draw.one(AFFIXES) + key,), (kind,), (f"The {key} of the {noun}.", f"Its {key}"), False)
        for key, kind in picked
    ]
    stem = f"{verb}_{noun.replace(' ', '_')}"
    deeds = []
    for opening in OPENINGS:
        links = [link(draw, f.key, f.names[0] if draw.chance(0.3) else f.key) for f in fields]
        words = f"{opening.replace('{verb}', verb).replace('{noun}', noun)} {draw.one((' ', ', ', ' and ')).join(links)}"
        deeds.append(words.replace(" ,", ",").strip())
    return Family(
        key=f"invented {stem}",
        names=(stem, stem, f"{noun.replace(' ', '_')}_{verb}", f"{verb}_the_{noun.replace(' ', '_')}"),
        about=(f"{verb.capitalize()} the {noun}.", f"{verb.capitalize()} a {noun}", f"Used to {verb} the {noun}."),
        fields=tuple(fields),
        requests=(),
        held_out=(),
        deeds=tuple(deeds),
        things=(),
        result=draw.one(({}, {"status": "enum:ok,done,ready,queued"}, {"value": "int:1:999"})),
        answers=(f"Done with the {noun}.", f"The {noun} is taken care of."),
    )
