"""How a fetch looks: one line that moves on a terminal, a line now and then elsewhere, and what came of it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import click

from stoker.cli.show import duration, printable, width
from stoker.fetch.meter import Progress
from stoker.flows.fetching import Desk
from stoker.records import MIB, Fetched, FetchView, say_bytes

LINE_EVERY_S = 10.0
TICK_S = 0.2
CLEAR = "\r\x1b[K"


class Teller:
    """Tells a fetch on standard error, so that standard output is the result alone."""

    def __init__(self, says_yes: bool) -> None:
        self.says_yes = says_yes
        self.moves = sys.stderr.isatty()
        self._told_at = time.monotonic()
        self._lock = threading.Lock()

    def desk(self) -> Desk:
        """Returns this as a fetch sees it."""
        return Desk(self.tell, self.show, self.ask, TICK_S)

    def tell(self, sentence: str) -> None:
        """Prints a sentence on a line of its own."""
        with self._lock:
            click.echo(f"{CLEAR if self.moves else ''}{printable(sentence)}", err=True)

    def show(self, progress: Progress) -> None:
        """Shows how far the fetch is."""
        now, is_over = time.monotonic(), progress.checked_bytes >= progress.check_bytes
        with self._lock:
            if self.moves:
                click.echo(f"{CLEAR}{progress_text(progress)[: width() - 1]}", err=True, nl=is_over)
            elif is_over or now - self._told_at >= LINE_EVERY_S:
                self._told_at = now
                click.echo(progress_text(progress), err=True)

    def ask(self, question: str) -> bool | None:
        """Asks the person; None where there is none."""
        if self.says_yes:
            return True
        return click.confirm(printable(question), err=True) if sys.stdin.isatty() and sys.stderr.isatty() else None


def progress_text(progress: Progress) -> str:
    """Returns the progress as one line. Pure."""
    said = f"{amount(progress.fetched_bytes)} of {amount(progress.need_bytes)} fetched"
    if progress.rate_bytes_s:
        said += f", {progress.rate_bytes_s / MIB:.1f} MiB/s"
    if progress.left_s is not None and progress.left_s > 0:
        said += f", {duration(progress.left_s)} left"
    return f"{said}; {amount(progress.checked_bytes)} verified"


def amount(count: int) -> str:
    """Returns an amount of data; a small one in bytes. Pure."""
    return say_bytes(count) if count >= MIB else f"{count:,} bytes"


def fetch_text(view: FetchView) -> str:
    """Returns what came of a fetch, or what one would bring. Pure."""
    lines = [line for one in view.models for line in _model_lines(one, view.is_dry_run)]
    lines += [f"image  {view.image}"] if view.image else []
    if view.is_dry_run and view.models:
        free = "unknown" if view.free_bytes is None else amount(view.free_bytes)
        lines.append(f"{amount(view.need_bytes)} would be fetched into {view.folder}; free on its disk: {free}")
    return "\n".join([*lines, *view.notes])


def _model_lines(one: Fetched, is_dry_run: bool) -> Iterator[str]:
    yield f"{one.role}  {one.repository} at {one.revision}" + ("" if one.asked == one.revision else f" ({one.asked})")
    came = f"{amount(one.fetched_bytes)} {'to fetch' if is_dry_run else 'came now'}"
    yield f"  {one.files} files, {amount(one.size_bytes)}; {came}" + (
        "" if is_dry_run else "; every file verified by its hash"
    )
    for left in one.left_out:
        yield f"  left out: {left.why} ({len(left.files)} files, {amount(left.size_bytes)})"
    for file in one.completed:
        yield f"  added: {file.name} from {file.repository} at {file.revision[:12]}"
    if not is_dry_run:
        yield f"  path: {one.path}"
        yield f"  loads in: {', '.join(one.loads_in) or 'no engine that Stoker knows'}"
