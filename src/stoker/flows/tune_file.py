"""Puts the way that was chosen into `stoker.toml`, whole or not at all."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

from stoker import __version__
from stoker.box import clock_s
from stoker.clients.toml_table import line_of
from stoker.config import Config
from stoker.errors import Refused, StokerError
from stoker.flows.client_files import write_mended
from stoker.flows.tunable import Tunable
from stoker.records import TriedWay, TuneView, Way
from stoker.tune.showing import say_band
from stoker.tune.writing import keys_of, write_way

MOST_SAID = 8


class Writer:
    """Knows the file as it was when the tuning began; raises Refused at once where it could not be written at the end."""

    def __init__(self, config: Config, tunable: Tunable) -> None:
        service = tunable.wish.name
        self._tunable = tunable
        self._file = Path(config.source) if config.source and service in config.services else None
        self._before = self._table(self._read()) if self._file else {}
        self.has_written = False
        if self._file is not None:
            write_way(self._read(), service, self._keys(Way("ngram")), ("",))
            if not os.access(self._file.parent, os.W_OK):
                raise Refused(f"{self._file} cannot be written", next_step="tune as its owner")

    @property
    def has_file(self) -> bool:
        """Tells whether the service stands in a file at all; the demo need not."""
        return self._file is not None

    def lines_of(self, way: Way) -> tuple[str, ...]:
        """Returns the lines that say a way."""
        return tuple(line_of(name, value) for name, value in self._keys(way).items())

    def write(self, way: Way, view: TuneView) -> str:
        """Writes a way, and returns the file; raises StokerError where that was changed meanwhile, or cannot be written."""
        file = self._file or Path()
        said, text = self._keys(way), self._read()
        if self._table(text) != self._before:
            raise Refused(
                f"the table of {self._tunable.wish.name} in {self._file} was changed meanwhile, so nothing is written",
                next_step=f"put it in yourself: {'; '.join(self.lines_of(way))}",
            )
        write_mended(file, write_way(text, self._tunable.wish.name, said, evidence_of(view)))
        self.has_written = True
        return str(file)

    def _keys(self, way: Way) -> dict[str, str | int]:
        draft = self._before.get("draft")
        return keys_of(way, draft if isinstance(draft, str) else None)

    def _read(self) -> str:
        file = self._file or Path()
        try:
            return file.read_bytes().decode()
        except (OSError, ValueError) as problem:
            raise StokerError(f"{file} cannot be read", why=str(problem)) from problem

    def _table(self, text: str) -> dict[str, object]:
        table = tomllib.loads(text).get("service", {}).get(self._tunable.wish.name, {})
        return dict(table) if isinstance(table, dict) else {}


def evidence_of(view: TuneView) -> tuple[str, ...]:
    """Returns what the file says of why this was chosen, beside it. Pure, but for the date."""
    day = time.strftime("%Y-%m-%d", time.localtime(clock_s()))
    measured = [one for one in view.ways if one.measured is not None]
    best = sorted(measured, key=lambda one: one.measured.tok_s if one.measured else 0.0, reverse=True)[:MOST_SAID]
    contents = " and ".join(map(_plain, view.contents))
    runs = sorted({run for one in measured for run in one.run_ids})
    return (
        f"{day}, Stoker {__version__}, {view.engine}, {view.objective}, {contents}: {view.why}",
        ", ".join(_say(one) for one in best) + " tok/s",
        f"before: {view.present.name}; `stoker rollback {view.service}` goes back; runs {', '.join(map(str, runs)) or '-'}",
    )


def _plain(content: str) -> str:
    return "".join(letter for letter in Path(content).name if letter.isprintable())


def _say(one: TriedWay) -> str:
    return f"{one.way.name} {say_band(one.measured)}" if one.measured else one.way.name
