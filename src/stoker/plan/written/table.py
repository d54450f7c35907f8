"""A mapping in somebody's file, asked key by key: what is not of the kind expected is said, and left out."""

from __future__ import annotations

import difflib
from collections.abc import Collection


def scalar_text(value: object) -> str | None:
    """Returns a scalar as Python's tools print it (`True`, `0.8`), or None for a list, a map, nothing or endless digits."""
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # more digits than Python prints
        return None


class Table:
    """A mapping and the list of sentences on what is odd in it, shared by all tables of a file."""

    def __init__(self, value: object, path: str = "", said: list[str] | None = None) -> None:
        self.path = path
        self.said: list[str] = [] if said is None else said
        self.values: dict[str, object] = {}
        if isinstance(value, dict):
            self.values = {text: item for key, item in value.items() if (text := scalar_text(key)) is not None}
        elif value is not None:
            self.said.append(f"`{path or 'the file'}` should hold keys with values, and does not")

    def __contains__(self, key: str) -> bool:
        """Tells whether the key is there with a value."""
        return self.values.get(key) is not None

    def where(self, key: str) -> str:
        """Returns the key's path in the file."""
        return f"{self.path}.{key}".lstrip(".")

    def text(self, key: str) -> str | None:
        """Returns a scalar as text."""
        value = self.values.get(key)
        text = scalar_text(value)
        if value is not None and text is None:
            self.said.append(f"`{self.where(key)}` should be one value, and is not")
        return text

    def number(self, key: str) -> int | None:
        """Returns a whole number."""
        text = self.text(key)
        if text is not None and text.isdecimal() and len(text) < 10:
            return int(text)
        if text is not None:
            self.said.append(f"`{self.where(key)}` should be a whole number, and is {text[:40]!r}")
        return None

    def is_on(self, key: str) -> bool:
        """Tells whether a switch is true."""
        return self.values.get(key) is True

    def table(self, key: str) -> Table:
        """Returns the mapping below a key, empty where there is none."""
        return Table(self.values.get(key), self.where(key), self.said)

    def tables(self, key: str) -> list[Table]:
        """Returns the mappings of a list."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, list):
            self.said.append(f"`{self.where(key)}` should be a list, and is not")
        return [Table(item, f"{self.where(key)}.{place}", self.said) for place, item in enumerate(_items(value))]

    def texts(self, key: str) -> tuple[str, ...]:
        """Returns the scalars of a list; one scalar counts as a list of it."""
        value = self.values.get(key)
        found = [scalar_text(item) for item in (value if isinstance(value, list) else [value])]
        if value is not None and None in found:
            self.said.append(f"`{self.where(key)}` should be a list of words, and is not")
        return tuple(text for text in found if text is not None)

    def pairs(self) -> dict[str, str]:
        """Returns all keys with their scalars."""
        return {key: text for key in self.values if (text := self.text(key)) is not None}

    def check_keys(self, known: Collection[str], whose: str) -> None:
        """Says which keys the program that owns the format does not know; each of them passes it in silence."""
        for key in self.values:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
                hint = f"; meant is perhaps `{close[0]}`" if close else ""
                self.said.append(f"`{self.where(key)[:80]}` is no key of {whose}{hint}")


def _items(value: object) -> list[object]:
    return value if isinstance(value, list) else []
