"""Which cells of two runs ask the same, and what makes comparing them doubtful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from stoker.records import BenchCell, BenchRun, CellResult

CLOSE = 0.02  # a tool that measures its lengths instead of asking for them is off by a few tokens
Pair = tuple[CellResult, CellResult]


def pair_cells(a: Sequence[CellResult], b: Sequence[CellResult]) -> list[Pair]:
    """Returns the cells that both have, in a's order: each one beside the one of b that asks most nearly the same."""
    left = list(b)
    pairs: list[Pair] = []
    for limit in range(len(LIKENESS)):
        for one in a:
            if any(one is taken for taken, _ in pairs):
                continue
            other = next((each for each in left if likeness(one.cell, each.cell) == limit), None)
            if other is not None:
                left.remove(other)
                pairs.append((one, other))
    place = {id(one): number for number, one in enumerate(a)}
    return sorted(pairs, key=lambda pair: place[id(pair[0])])


LIKENESS = ("the same", "other texts", "about the same lengths")


def likeness(a: BenchCell, b: BenchCell) -> int | None:
    """Returns how alike two cells are, as a place in LIKENESS; None where they ask different things."""
    if a == b:
        return 0
    if _without(a, "content") == _without(b, "content"):
        return 1
    is_close = _is_close(a.prompt_tokens, b.prompt_tokens) and _is_close(a.new_tokens, b.new_tokens)
    rest = ("content", "prompt_tokens", "new_tokens")
    return 2 if is_close and _without(a, *rest) == _without(b, *rest) else None


def _without(cell: BenchCell, *names: str) -> dict[str, object]:
    return {name: value for name, value in msgspec.structs.asdict(cell).items() if name not in names}


def _is_close(a: int | None, b: int | None) -> bool:
    return a is None or b is None or abs(a - b) <= CLOSE * max(a, b)


def doubts_of_cells(a: CellResult, b: CellResult) -> Iterator[str]:
    """Gives what makes comparing two cells doubtful."""
    alike = likeness(a.cell, b.cell)
    if alike and a.cell.content != b.cell.content:
        yield f"other texts ({a.cell.content} and {b.cell.content}): speculation and caches may like one of them more"
    if alike == 2:
        yield f"lengths are {_lengths(a.cell)} and {_lengths(b.cell)} tokens"
    if set(a.counted_by) != set(b.counted_by):
        yield f"tokens are counted by {_listed(a.counted_by)} and by {_listed(b.counted_by)}"
    for name, one in (("A", a), ("B", b)):
        if one.failed:
            yield f"{name}: {one.failed} of {one.asked} requests failed"
        yield from (f"{name}: {warning}" for warning in one.warnings)


def _lengths(cell: BenchCell) -> str:
    return f"{cell.prompt_tokens} and {'an unknown number of' if cell.new_tokens is None else cell.new_tokens}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(sorted(names)) or "nobody knows what"


def are_pairs(a: BenchRun, b: BenchRun, one: CellResult, other: CellResult) -> bool:
    """Tells whether repeats have the same prompts, the first beside the first: of one seed, asked by the same program."""
    return (
        a.seed is not None
        and (a.seed, a.tool, a.tool_version, a.subject.model) == (b.seed, b.tool, b.tool_version, b.subject.model)
        and one.cell == other.cell
        and bool(one.repeats)
        and [len(repeat.requests) for repeat in one.repeats] == [len(repeat.requests) for repeat in other.repeats]
    )
