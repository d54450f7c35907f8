"""What a tool's parameters can hold: how a person says a value and how the call writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dialogue.draw import Draw, sentences, words
from dialogue.records import Json


@dataclass(frozen=True)
class Value:
    """One value as said in a sentence and as written in the call."""

    said: str
    written: Any


CURRENCIES = {
    "USD": "dollars",
    "EUR": "euros",
    "GBP": "pounds",
    "JPY": "yen",
    "CHF": "francs",
    "SEK": "kronor",
    "INR": "rupees",
    "CAD": "Canadian dollars",
    "AUD": "Australian dollars",
    "PLN": "zloty",
    "CNY": "yuan",
    "BRL": "reais",
}
OPERATORS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
DATES = (
    "tomorrow",
    "today",
    "next {weekday}",
    "{weekday}",
    "{month} {day}",
    "{day} {month}",
    "2026-{mm:02}-{day:02}",
    "2027-{mm:02}-{day:02}",
)
MESSAGES = sentences("fields", "messages")


def hour(draw: Draw) -> str:
    """A time of day in one of the usual spellings."""
    at, minute = draw.integer(0, 23), draw.one((0, 15, 30, 45, draw.integer(0, 59)))
    if draw.chance(0.5):
        return f"{at:02}:{minute:02}"
    half = draw.one((" am", " pm", "am", "pm"))
    return f"{at % 12 + 1}:{minute:02}{half}" if minute else f"{at % 12 + 1}{half}"


def date(draw: Draw) -> str:
    """A day as people name it."""
    return draw.one(DATES).format(
        weekday=draw.word("weekday"), month=draw.word("month"), day=draw.integer(1, 28), mm=draw.integer(1, 12)
    )


def message(draw: Draw) -> str:
    """A short sentence to pass on, sometimes nonsense, so that copying has to be exact."""
    if draw.chance(0.2):
        return " ".join(nonsense(draw) for _ in range(draw.integer(2, 5)))
    values = {kind: draw.value(kind) for kind in ("thing", "room", "adjective", "action", "weekday")}
    values |= {"person": draw.name("person"), "city": draw.name("city"), "hour": hour(draw)}
    return draw.phrase(draw.one(MESSAGES), values | {"count": draw.integer(2, 20)})


def nonsense(draw: Draw) -> str:
    """A word without context."""
    return draw.invented() if draw.chance(0.3) else draw.value(draw.one(("thing", "animal", "adjective", "colour")))


def query(draw: Draw) -> str:
    """What somebody might look for."""
    forms = (
        "{topic}",
        "{topic} in {city}",
        "[best|cheap|used] {adjective} {thing}",
        "history of {topic}",
        "{word} {thing}",
        "how to {action} a {thing}",
        "{topic} for beginners",
        "{adjective} {animal} [pictures|facts|sounds]",
    )
    values = {kind: draw.value(kind) for kind in ("topic", "adjective", "thing", "action", "animal")}
    return draw.phrase(draw.one(forms), values | {"city": draw.name("city"), "word": draw.invented()})


def email(draw: Draw) -> str:
    """An address."""
    name = draw.name("person").lower().replace(" ", ".")
    host = draw.one(
        ("example.com", "example.org", "mail.test", f"{draw.invented()}.{draw.one(('com', 'io', 'net', 'org'))}")
    )
    return f"{name}@{host}"


def identifier(draw: Draw) -> str:
    """An order number, a ticket or the like."""
    letters = "".join(draw.one("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(draw.integer(1, 3)))
    digits = "".join(draw.one("0123456789") for _ in range(draw.integer(3, 6)))
    return draw.one((f"{letters}{digits}", f"{letters}-{digits}", digits, f"{letters.lower()}{digits}"))


def path(draw: Draw) -> str:
    """A file, with or without its folder."""
    name = (
        draw.value("file")
        if draw.chance(0.5)
        else f"{draw.invented()}.{draw.one(('txt', 'py', 'md', 'json', 'log', 'csv'))}"
    )
    return f"{draw.value('folder')}/{name}" if draw.chance(0.4) else name


def host(draw: Draw) -> str:
    """A machine's name or address."""
    address = ".".join(str(draw.integer(1, 254)) for _ in range(4))
    return draw.one(
        (
            address,
            f"{draw.invented()}.{draw.one(('com', 'org', 'net', 'dev', 'local'))}",
            f"{draw.invented()}-{draw.integer(1, 20)}",
        )
    )


def ticker(draw: Draw) -> str:
    """A share's symbol."""
    return "".join(draw.one("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(draw.integer(2, 4)))


def expression(draw: Draw) -> Value:
    """A sum, said in symbols or in words."""
    parts = [str(draw.integer(1, 10 ** draw.integer(1, 4)))]
    said = list(parts)
    for _ in range(2 if draw.chance(0.2) else 1):
        sign, number = draw.one(tuple(OPERATORS)), str(draw.integer(1, 10 ** draw.integer(1, 3)))
        parts += [sign, number]
        said += [sign, number]
    if draw.chance(0.5):
        said = [OPERATORS.get(part, part) for part in said]
    glue = " " if said[1] not in OPERATORS or draw.chance(0.7) else ""
    return Value(glue.join(said), " ".join(parts))


def currency(draw: Draw) -> Value:
    """A currency by code or by name; the call takes the code."""
    code = draw.one(tuple(CURRENCIES))
    return Value(code if draw.chance(0.5) else CURRENCIES[code], code)


def amount(draw: Draw) -> Value:
    """A sum of money or another measured number."""
    number: float = draw.integer(1, 10 ** draw.integer(1, 4))
    if draw.chance(0.25):
        number = round(number + draw.integer(1, 99) / 100, 2)
    return Value(str(number), number)


def plain(make: Callable[[Draw], str]) -> Callable[[Draw], Value]:
    """A kind whose value is written as it is said."""

    def value(draw: Draw) -> Value:
        text = make(draw)
        return Value(text, text)

    return value


MAKERS: dict[str, Callable[[Draw], Value]] = {
    "time": plain(hour),
    "date": plain(date),
    "message": plain(message),
    "query": plain(query),
    "email": plain(email),
    "id": plain(identifier),
    "path": plain(path),
    "host": plain(host),
    "ticker": plain(ticker),
    "word": plain(Draw.invented),
    "expression": expression,
    "currency": currency,
    "amount": amount,
    "folder": plain(lambda draw: draw.value("folder")),
}
TYPES = {"amount": "number", "int": "integer", "bool": "boolean"}


def options(kind: str) -> list[tuple[str, str]]:
    """The written and said forms of an enumeration such as `enum:on,off` or `enum:C=Celsius,F=Fahrenheit`."""
    pairs = [option.partition("=") for option in kind.removeprefix("enum:").split(",")]
    return [(written, said or written) for written, _, said in pairs]


def sample(draw: Draw, kind: str) -> Value:
    """A value of a kind such as `city`, `int:1:90`, `enum:on,off` or `bool:on,off`."""
    stem, _, rest = kind.partition(":")
    if stem == "int":
        low, high = map(int, rest.split(":"))
        number = draw.integer(low, high)
        return Value(str(number), number)
    if stem == "enum":
        written, said = draw.one(options(kind))
        return Value(said, written)
    if stem == "bool":
        yes, no = rest.split(",")
        return draw.one((Value(yes, True), Value(no, False)))
    if stem in MAKERS:
        return MAKERS[stem](draw)
    text = draw.value(stem)
    return Value(text, text)


def schema(kind: str) -> Json:
    """The JSON schema of a kind."""
    stem = kind.partition(":")[0]
    if stem == "enum":
        return {"type": "string", "enum": [written for written, _ in options(kind)]}
    if stem not in MAKERS and stem not in TYPES:
        words(stem)  # a misspelt kind fails here
    return {"type": TYPES.get(stem, "string")}
