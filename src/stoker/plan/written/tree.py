"""YAML that people wrote: with the line of each key, and with the mistakes that YAML readers forgive in silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from stoker.errors import StokerError

try:  # libyaml is ten times faster (1.3 against 13.6 ms for 740 lines); a PyYAML built from source may lack it
    from yaml import CSafeLoader as _Base
except ImportError:
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

MOST_CHARACTERS = 4_000_000
MOST_DEPTH = 60
MOST_KEYS = 50_000
LONGEST_KEY = 200
MERGE = "tag:yaml.org,2002:merge"
TIMESTAMP = "tag:yaml.org,2002:timestamp"
# What PyYAML lets through for text such as `!!int x`, `!!bool x`, `!!timestamp x`, an anchor inside itself, or 5,000 digits.
FAULTS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError)


class _Loader(_Base):
    """Reads a date as the text that it is; nothing here needs a calendar, and 2026-02-30 is no reason to give up."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own way
        first: [(tag, pattern) for tag, pattern in resolvers if tag != TIMESTAMP]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


class Tree(NamedTuple):
    """What a file holds, the line of each key by its path (`serve.command`), and the paths that stand there twice."""

    value: object
    lines: dict[str, int]
    doubled: tuple[str, ...]

    def line(self, path: str) -> int:
        """Returns the line of a key, or 0 where it is not in the file."""
        return self.lines.get(path, 0)

    def complaints(self) -> list[str]:
        """Returns a sentence for each key that stands twice."""
        return [
            f"`{path}` stands twice, the second time in line {self.line(path)}: that one counts" for path in self.doubled
        ]


def read_tree(text: str, name: str) -> Tree:
    """Returns what a YAML text holds; raises StokerError where it is not YAML, or a trap for its readers."""
    try:
        _check_size(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            survey = _Survey(node)
            value = loader.construct_document(node) if node else None
            return Tree(value, survey.lines, tuple(survey.doubled))
        finally:
            loader.dispose()
    except FAULTS as problem:
        raise StokerError(
            f"{name} is not valid YAML",
            why=" ".join(str(problem).split()) or type(problem).__name__,
            next_step="mend that line and try again",
        ) from problem


def _check_size(text: str) -> None:
    """Raises ValueError where the text is too long or too deep: libyaml's composer recurses in C and would crash."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it is longer than {MOST_CHARACTERS:,} characters")
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            raise ValueError(f"it is nested deeper than {MOST_DEPTH} levels in line {_line(event)}")


class _Survey:
    """A walk over all nodes of a file: where the keys stand, and which stand twice in one mapping."""

    def __init__(self, root: yaml.Node | None) -> None:
        self.lines: dict[str, int] = {}
        self.doubled: list[str] = []
        self._sizes: dict[int, int] = {}
        self._waiting: list[tuple[str, yaml.Node | None]] = [("", root)]
        seen: set[int] = set()
        while self._waiting:
            path, node = self._waiting.pop()
            if id(node) not in seen:  # an aliased node counts where it was written, else nine of nine would be billions
                seen.add(id(node))
                self._visit(f"{path}." if path else "", node)

    def _visit(self, before: str, node: yaml.Node | None) -> None:
        if isinstance(node, yaml.SequenceNode):
            self._waiting += [(f"{before}{place}", item) for place, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            _merged_size(node, self._sizes)
            # A key that is a list or a map is refused later; printed, one of aliases would fill the memory.
            scalars = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]
            own = [(f"{before}{key.value[:LONGEST_KEY]}", key, value) for key, value in scalars]
            names = Counter(name for name, key, _ in own if key.tag != MERGE)
            self.doubled += [name for name, count in names.items() if count > 1]
            self.lines.update((name, _line(key)) for name, key, _ in own)
            self._waiting += [(name, value) for name, _, value in reversed(own)]


def _merged_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Returns how many keys a mapping has with its `<<` merged in; a few lines of merges can mean billions."""
    if id(node) not in sizes:
        sizes[id(node)] = 0  # what a mapping that merges itself finds
        sizes[id(node)] = sum(_key_sizes(node, sizes)) if isinstance(node, yaml.MappingNode) else 1
    if sizes[id(node)] > MOST_KEYS:
        raise ValueError(f"its merges make more than {MOST_KEYS:,} keys of line {_line(node)}")
    return sizes[id(node)]


def _key_sizes(node: yaml.MappingNode, sizes: dict[int, int]) -> Iterator[int]:
    for key, value in node.value:
        if key.tag != MERGE:
            yield 1
        elif isinstance(value, yaml.SequenceNode):
            yield sum(_merged_size(one, sizes) for one in value.value)
        else:
            yield _merged_size(value, sizes)


def _line(place: yaml.Event | yaml.Node) -> int:
    return place.start_mark.line + 1 if place.start_mark else 0
