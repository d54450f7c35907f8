"""A tuning as people see it: the curve with what was predicted and what was measured, and what became of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from stoker.cli.show import printable, table, width, wrapped
from stoker.errors import WrongUse
from stoker.flows.tune_asking import Asking, Talk
from stoker.records import Band, TriedWay, TuneView, say_s
from stoker.tune.showing import say_band, shown_ways

CELLS = 40
INSIDE, POINT = "░", "●"
CLEAR = "\r\x1b[K"
BESIDE = (
    "It stays up until the best way is known, and is started once more then; whoever uses it meanwhile disturbs the figures."
)


class Teller:
    """Tells a tuning: a line for each way, and on a terminal one more that moves."""

    def __init__(self, *, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._moves = sys.stderr.isatty() and not is_silent

    def begin(self, view: TuneView, asking: Asking, *, says_yes: bool, is_named: bool) -> None:
        """Says what is going to be done to whom, and asks where somebody can answer; ends where the answer is no.

        Raises WrongUse where nobody named the service and nobody can be asked.
        """
        lines = [line for text in intention(view, asking) for line in wrapped(printable(text), more="  ")]
        if not self._is_silent:
            click.echo("\n".join(lines))
        if says_yes:
            return
        if sys.stdin.isatty() and sys.stderr.isatty():
            if not click.confirm("Begin?", default=True, err=True):
                click.echo("nothing was started", err=True)
                raise SystemExit(1)
        elif not is_named:
            raise WrongUse(
                f"it would start {view.service} anew, or a second one beside it, several times, and nobody named it",
                next_step=f"`stoker tune {view.service}`, or --yes",
            )

    def talk(self) -> Talk:
        """Returns this as a tuning sees it."""
        return Talk(self._say, self._tell)

    def close(self) -> None:
        """Clears the line that moved."""
        if self._moves:
            click.echo(CLEAR, nl=False, err=True)

    def _say(self, line: str) -> None:
        self.close()
        if not self._is_silent:
            click.echo(printable(line))

    def _tell(self, line: str) -> None:
        if self._moves:
            click.echo(f"{CLEAR}{printable(line)[: width() - 1]}", nl=False, err=True)


def intention(view: TuneView, asking: Asking) -> Iterator[str]:
    """Returns what a tuning is going to do, before it does it."""
    knob = "how it drafts" if asking.knob == "drafts" else f"its `{asking.knob}`"
    counts = " and ".join(map(str, asking.concurrency))
    load = "one request at a time" if asking.concurrency == (1,) else f"{counts} requests at once"
    yield f"{view.service} ({view.engine}): {knob}, for {' and '.join(view.contents)}, {load}. Now: {view.present.name}"
    took = "" if view.expected_s is None else f"; {say_s(view.expected_s)} where all of it takes longest"
    meanwhile = BESIDE if asking.beside else "Whoever uses it is cut off at each start."
    yield f"{view.why}{took}, {say_s(asking.budget_s)} at most. {meanwhile}"


def view_text(view: TuneView) -> str:
    """Returns the curve and the outcome."""
    rows = [(_name(one, view), _rate(one.predicted), _rate(one.measured), _drafts(one), _plot(one, _most(view)))
            for one in shown_ways(view)]  # fmt: skip
    head = ("way", "predicted", "measured", "accepted", f"0 to {_most(view):.0f} tok/s" if _most(view) else "")
    lines = ["", table(head, rows), "", *_failures(view), *_outcome(view)]
    return "\n".join(lines)


def _name(one: TriedWay, view: TuneView) -> str:
    mark = "*" if one.way == view.chosen else ""
    now = " (now)" if one.way == view.present else ""
    return f"{one.way.name}{now}{mark}"


def _most(view: TuneView) -> float:
    bands = [band for one in view.ways for band in (one.predicted, one.measured) if band]
    return max((band.high_tok_s or band.tok_s for band in bands), default=0.0)


def _rate(band: Band | None) -> str:
    return "-" if band is None else say_band(band)


def _drafts(one: TriedWay) -> str:
    return "-" if one.accept_rate is None else f"{one.accept_rate:.0%}"


def _plot(one: TriedWay, most: float) -> str:
    """Returns one line of the picture: the predicted band, and the measured point in it or beside it."""
    if not most or (one.predicted is None and one.measured is None):
        return ""
    cells = [" "] * (CELLS + 1)
    if one.predicted is not None:
        low, high = (_place(value or 0.0, most) for value in (one.predicted.low_tok_s, one.predicted.high_tok_s))
        cells[low : high + 1] = INSIDE * (high + 1 - low)
    if one.measured is not None:
        cells[_place(one.measured.tok_s, most)] = POINT
    return "".join(cells).rstrip()


def _place(tok_s: float, most: float) -> int:
    return max(0, min(CELLS, round(tok_s / most * CELLS)))


def _failures(view: TuneView) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in view.ways:
        if one.tried in ("refused", "failed"):
            reasons.setdefault(one.why, []).append(one.way.name)
    for why, names in reasons.items():
        said = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        yield from wrapped(printable(f"{said}: {why}"), more="  ")


def _outcome(view: TuneView) -> Iterator[str]:
    for warning in view.warnings:
        yield from (click.style(line, fg="yellow") for line in wrapped(warning, more="  "))
    took = "" if view.took_s is None else f"; {view.starts} starts in {say_s(view.took_s)}, {view.sweep_starts} for a sweep"
    chosen = f"{view.chosen.name}: " if view.chosen else ""
    yield from wrapped(printable(f"{chosen}{view.why}{took}"), more="  ")
    if view.took_s is None:
        yield (
            f"at most {say_s(view.expected_s)}" if view.expected_s is not None else "how long a start takes is not known yet"
        )
    elif view.written is not None:
        yield f"written: {view.written} ({', '.join(view.lines)}); back with `stoker rollback {view.service}`"
    elif view.chosen is not None and view.chosen == view.present:
        yield "it is what the service has: nothing was changed"
    elif view.chosen is not None:
        yield f"not written; to have it: {', '.join(view.lines)}"
