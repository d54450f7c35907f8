"""Keeps a run while it is measured, and takes up one that was interrupted; what no disk takes is left as a file."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stoker import __version__
from stoker.bench.comparing.subjects import differences_of_subjects
from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.bench import TOOL, Wanted
from stoker.flows.bench_claim import Claim
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
    """Keeps each cell as soon as it is given; a disk that takes none never ends a measurement.

    Nothing is kept before the first cell, so that a run that was refused leaves no trace.
    """

    def __init__(
        self,
        paths: Paths,
        run: BenchRun,
        asked: Sequence[BenchCell],
        begun: KeptRun | None = None,
        claim: Claim | None = None,
    ) -> None:
        self._paths, self._run, self._begun = paths, run, begun
        self._claim = claim or Claim(paths)
        self._asked = tuple(asked) if begun is None else begun.asked
        self._results = {one.cell: one for one in begun.run.cells if one.is_whole} if begun else {}
        self._id = begun.run.id if begun else None
        self._store: BenchStore | None = None
        self._problem: StokerError | None = None

    @property
    def missing(self) -> tuple[BenchCell, ...]:
        """The cells that are still to be measured, in order."""
        return tuple(cell for cell in self._asked if cell not in self._results)

    def keep(self, result: CellResult) -> None:
        """Keeps a cell."""
        self._results[result.cell] = result
        if self._problem is not None:
            return
        try:
            store, number = self._opened()
            store.write_cell(number, self._asked.index(result.cell), result)
        except StokerError as problem:
            self._problem = problem

    def _opened(self) -> tuple[BenchStore, int]:
        if self._store is None:
            make_state_folder(self._paths)
            self._store = BenchStore(self._paths.bench_database)
        if self._id is None:
            self._id = self._store.begin(msgspec.structs.replace(self._run, is_whole=False), self._asked)
            self._claim.take(self._id)
        return self._store, self._id

    def close(self, run: BenchRun) -> Kept:
        """Keeps what is known at the end, and returns the run with all its cells, those measured earlier too."""
        cells = tuple(self._results[cell] for cell in self._asked if cell in self._results)
        is_whole = not self.missing and all(one.is_whole for one in cells)
        whole = msgspec.structs.replace(run, cells=cells, is_whole=is_whole, **self._earlier(run))
        if cells and self._problem is None:
            try:
                store, number = self._opened()
                store.finish(number, whole, self._asked)
            except StokerError as problem:
                self._problem = problem
        if self._store is not None:
            self._store.close()
        self._claim.release()
        if self._problem is not None:
            return _leave(whole, self._problem)
        return Kept(msgspec.structs.replace(whole, id=self._id))

    def _earlier(self, run: BenchRun) -> dict[str, Any]:
        """Returns what a run that was taken up again has of its first part: when it began, and what changed since."""
        if self._begun is None:
            return {}
        before = self._begun.run
        took_s = before.took_s or sum(repeat.took_s for one in before.cells for repeat in one.repeats)
        changed = [
            f"{one.what} was {one.a} in its first part" for one in differences_of_subjects(before.subject, run.subject)
            if one.a is not None and one.b is not None
        ]  # fmt: skip
        note = "; ".join(part for part in (before.note, run.note, *changed) if part)
        return {"began_at": before.began_at, "took_s": (run.took_s or 0.0) + took_s, "note": note}


def start_keeping(paths: Paths, wanted: Wanted, resumed: str | None) -> Keeper:
    """Returns what keeps a run: a new one, or the unfinished one of a number or `last`. Raises WrongUse or Refused."""
    run = BenchRun(
        id=None, tool=TOOL, tool_version=__version__, began_at=clock_s(), took_s=None, seed=wanted.settings.seed,
        is_whole=False, subject=wanted.subject, cells=(), words=wanted.words, slo=wanted.settings.slo,
    )  # fmt: skip
    asked = tuple(dict.fromkeys(wanted.cells))
    return Keeper(paths, run, asked) if resumed is None else resume(paths, run, asked, resumed)


def resume(paths: Paths, run: BenchRun, asked: Sequence[BenchCell], which: str = LAST) -> Keeper:
    """Takes up the last unfinished run that asks the same, or the one of a number; raises WrongUse or Refused."""
    odd: dict[int, list[str]] = {}
    busy: list[int] = []
    for number in _unfinished(paths, which):
        claim = Claim(paths)
        if not claim.take(number):
            busy.append(number)
            continue
        begun = read_bench_run(paths.bench_database, number)  # not before: it may just have got a cell more
        odd[number] = what_differs(begun, run, asked)
        if not odd[number]:
            return Keeper(paths, run, asked, begun, claim)
        claim.release()
    if not odd:
        raise Refused(
            f"run {busy[0]} is being measured by another process",
            why="two that go on with one run would measure each other",
            next_step="wait for its end, or leave --resume out to begin a run of its own",
        )
    last, why = next(iter(odd.items()))
    raise Refused(
        f"run {last} is unfinished, and asks something else",
        why="; ".join(why),
        next_step=f"`stoker bench --resume {last}` alone asks what it asked; or leave --resume out to begin anew",
    )


def words_of_unfinished(paths: Paths, which: str) -> tuple[str, ...]:
    """Returns what an unfinished run, a number or `last`, was asked with. Raises WrongUse."""
    words = read_bench_run(paths.bench_database, _unfinished(paths, which)[0]).run.words
    begin = 2 if words[1:2] == ("measure",) else 1
    return tuple(word for word in _without_resume(words[begin:]) if word not in ("--json", "--resume"))


def _unfinished(paths: Paths, which: str) -> Sequence[int]:
    """Returns the unfinished runs that are meant, the last one first."""
    unfinished = read_unfinished(paths.bench_database)
    if not unfinished:
        raise WrongUse(
            "there is no unfinished run", why="every run that was begun here is whole", next_step="leave --resume out"
        )
    return unfinished if which == LAST else (_number(which, unfinished),)


def _number(which: str, unfinished: Sequence[int]) -> int:
    if which not in map(str, unfinished):
        known = ", ".join(map(str, unfinished))
        raise WrongUse(f"{which} is no unfinished run", next_step=f"unfinished are: {known}")
    return int(which)


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
    return sorted(word for word in _without_resume(words) if word not in NOT_ASKED)


def _without_resume(words: Sequence[str]) -> list[str]:
    """Returns the words without the value of --resume."""
    return [word for place, word in enumerate(words) if not (place and words[place - 1] == "--resume" and _is_which(word))]


def _is_which(word: str) -> bool:
    return word.isdecimal() or word == LAST


def _leave(run: BenchRun, problem: StokerError) -> Kept:
    """Writes a run beside, where the database took it not: here, else where temporary files go."""
    from stoker.bench.formats.own import render_own  # seldom needed, and starting is measured too

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
