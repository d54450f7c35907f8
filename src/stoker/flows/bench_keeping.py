"""Keeps a run while it is measured, and takes up one that was interrupted; what no disk takes is left as a file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.bench.comparing.subjects import differences_of_subjects
from stoker.bench.formats.own import render_own
from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.ownership import make_state_folder
from stoker.records import BenchCell, BenchRun, CellResult, KeptRun
from stoker.store.bench import BenchStore, read_bench_run, read_unfinished

NOT_ASKED = frozenset(("bench", "measure", "--json", "--resume"))  # words that change nothing of what is measured
LAST = "last"


class Kept(NamedTuple):
    """What became of a run: its number, or the file where it was left, and what is to be told of that."""

    run: BenchRun
    left_at: Path | None = None
    warnings: tuple[str, ...] = ()


class Keeper:
    """Keeps each cell as soon as it is given; a disk that takes none never ends a measurement."""

    def __init__(self, paths: Paths, run: BenchRun, asked: Sequence[BenchCell], begun: KeptRun | None = None) -> None:
        self._asked = tuple(asked)
        self._begun = begun
        self._results: dict[BenchCell, CellResult] = (
            {one.cell: one for one in begun.run.cells if one.is_whole} if begun else {}
        )
        self._problem: StokerError | None = None
        self._store: BenchStore | None = None
        self._id = begun.run.id if begun else None
        try:
            make_state_folder(paths)
            self._store = BenchStore(paths.bench_database)
            if self._id is None:
                self._id = self._store.begin(msgspec.structs.replace(run, is_whole=False), self._asked)
        except StokerError as problem:
            self._problem = problem

    @property
    def missing(self) -> tuple[BenchCell, ...]:
        """The cells that are still to be measured, in order."""
        return tuple(cell for cell in self._asked if cell not in self._results)

    def keep(self, result: CellResult) -> None:
        """Keeps a cell; its requests stay in memory only where no disk took them."""
        self._results[result.cell] = result
        if self._store is None or self._problem is not None or self._id is None:
            return
        try:
            self._store.write_cell(self._id, self._asked.index(result.cell), result)
            self._results[result.cell] = msgspec.structs.replace(result, repeats=())
        except StokerError as problem:
            self._problem = problem

    def close(self, run: BenchRun) -> Kept:
        """Keeps what is known at the end, and returns the run with all its cells, those measured earlier too."""
        cells = tuple(self._results[cell] for cell in self._asked if cell in self._results)
        is_whole = not self.missing and all(one.is_whole for one in cells)
        whole = msgspec.structs.replace(run, id=self._id, cells=cells, is_whole=is_whole, **self._earlier(run))
        try:
            if self._store is not None and self._problem is None and self._id is not None:
                self._store.finish(self._id, whole, self._asked)
        except StokerError as problem:
            self._problem = problem
        if self._store is not None:
            self._store.close()
        return Kept(whole) if self._problem is None else _leave(whole, self._problem)

    def _earlier(self, run: BenchRun) -> dict[str, float | None]:
        """Returns the times of a run that was taken up again: they begin with the first cell, without the break."""
        if self._begun is None:
            return {}
        before_s = sum(repeat.took_s for one in self._begun.run.cells for repeat in one.repeats)
        return {"began_at": self._begun.run.began_at, "took_s": (run.took_s or 0.0) + (self._begun.run.took_s or before_s)}


def resume(paths: Paths, run: BenchRun, asked: Sequence[BenchCell], which: str = LAST) -> Keeper:
    """Takes up the last unfinished run that asks the same, or the one of a number; raises WrongUse or Refused."""
    unfinished = read_unfinished(paths.bench_database)
    if not unfinished:
        raise WrongUse(
            "there is no unfinished run", why="every run that was begun here is whole", next_step="leave --resume out"
        )
    if which != LAST:
        return _resume_one(paths, run, asked, which, unfinished)
    others: list[tuple[int, list[str]]] = []
    for number in unfinished:
        begun = read_bench_run(paths.bench_database, number)
        odd = what_differs(begun, run, asked)
        if not odd:
            return Keeper(paths, run, asked, begun)
        others.append((number, odd))
    raise _other_question(*others[0])


def _resume_one(paths: Paths, run: BenchRun, asked: Sequence[BenchCell], which: str, unfinished: Sequence[int]) -> Keeper:
    if not which.isdecimal() or int(which) not in unfinished:
        numbers = ", ".join(map(str, unfinished))
        raise WrongUse(f"{which} is no unfinished run", next_step=f"unfinished are: {numbers}")
    begun = read_bench_run(paths.bench_database, int(which))
    odd = what_differs(begun, run, asked)
    if odd:
        raise _other_question(int(which), odd)
    return Keeper(paths, run, asked, begun)


def _other_question(number: int, odd: Sequence[str]) -> Refused:
    return Refused(
        f"run {number} is unfinished, and asks something else",
        why="; ".join(odd),
        next_step="ask the same as it did (`stoker bench show` tells), or leave --resume out to begin anew",
    )


def what_differs(begun: KeptRun, run: BenchRun, asked: Sequence[BenchCell]) -> list[str]:
    """Returns what keeps a run from being gone on with: cells of one run have to be measured alike. Pure."""
    before = begun.run
    odd = [
        f"{one.what} was {one.a}, and is {one.b}" for one in differences_of_subjects(before.subject, run.subject)
        if one.a is not None and one.b is not None
    ]  # fmt: skip
    if before.tool_version != run.tool_version:
        odd.append(f"it was measured by {before.tool} {before.tool_version}")
    if set(begun.asked) != set(asked):
        odd.append(f"it asks {len(begun.asked)} cells, of which {len(set(begun.asked) & set(asked))} are asked now")
    elif question_of(before.words) != question_of(run.words):
        odd.append(f"its words were {' '.join(before.words)}")
    return odd


def question_of(words: Sequence[str]) -> list[str]:
    """Returns the words that say what is measured, in no order: without --resume, its value, and how it is printed."""
    kept = [word for place, word in enumerate(words) if not (place and words[place - 1] == "--resume" and _is_which(word))]
    return sorted(word for word in kept if word not in NOT_ASKED)


def _is_which(word: str) -> bool:
    return word.isdecimal() or word == LAST


def _leave(run: BenchRun, problem: StokerError) -> Kept:
    """Writes a run beside, where the database took it not: here, else where temporary files go."""
    text = render_own(msgspec.structs.replace(run, id=None))
    name = time.strftime("stoker-bench-%Y%m%d-%H%M%S.json", time.localtime(clock_s()))
    why = f"the run is not kept: {problem.what} ({problem.why})"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        with suppress(OSError):
            left_at = _write_new(folder / name, text)
            step = f"it is in {left_at}; `stoker bench import` keeps it once that is mended"
            return Kept(msgspec.structs.replace(run, id=None), left_at, (f"{why}. {step}", problem.next_step))
    return Kept(
        msgspec.structs.replace(run, id=None),
        None,
        (f"{why}, and no other disk took it: it is only shown", problem.next_step),
    )


def _write_new(file: Path, text: str) -> Path:
    """Writes a file that was not there, whole or not at all."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise
    except OSError:
        file.unlink(missing_ok=True)
        raise
    return file
