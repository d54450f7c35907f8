"""What an engine's start was made of, read from its own log lines. Pure.

lines -> the last start among them -> times -> spans by the engine's signs -> stages, and what none of them explains
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from stoker.engines import Engine, find, names
from stoker.records import GIB, MIB, Stage, StageName, StageSign, Timeline
from stoker.supervise.log_clock import Line, last_start, read_clock
from stoker.supervise.logs import visible
from stoker.supervise.spans import Span, clip, covered_s, share_out

Heard = tuple[float | None, str]
DIGITS = 3  # of seconds: no log tells more that matters
MOST_LINES = 20_000  # of those that tell something; a start has some dozens of them
PROVED = "a first answer, asked for by Stoker"


def read_timeline(
    engine: Engine, lines: Iterable[Heard], begun_at: float | None = None, ready_at: float | None = None
) -> Timeline:
    """Returns the last start in a log; `lines` are texts with the time at which each arrived, if that is known.

    `begun_at` and `ready_at` are seconds since the epoch, as the arrivals are; without them the log alone is the clock.
    """
    heard = [(arrived, visible(text.encode(errors="replace"))) for arrived, text in lines]
    own = heard[last_start(engine.log_form, [text for _, text in heard]) :]
    reading = _Reading(engine, begun_at)
    for line in read_clock(engine.log_form, own, begun_at):
        reading.read(line)
        if reading.is_ready:
            break
    return reading.timeline(ready_at)


def recognise(texts: Sequence[str]) -> str | None:
    """Returns the engine whose signs are most frequent in a log, or None where there are none.

    By which words one says that it is ready counts for nothing: every program with the same web server says them.
    """
    engines = [find(name) for name in names()]
    ready = [re.compile(engine.log_form.ready) for engine in engines]
    own = [text for text in texts if not _is_telling(ready, text)]
    counts = {engine.name: _count(_patterns(engine), own) for engine in engines}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else None


def _patterns(engine: Engine) -> list[re.Pattern[str]]:
    form = engine.log_form
    return [re.compile(pattern) for pattern in (form.starts, *(sign.pattern for sign in form.signs))]


def _count(patterns: list[re.Pattern[str]], texts: Iterable[str]) -> int:
    return sum(1 for text in texts if _is_telling(patterns, text))


def _is_telling(patterns: list[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


class TimelineWatch:
    """Hears a start as it happens; keeps only the lines that tell something, so that a long load costs no memory."""

    def __init__(self, engine: Engine, begun_at: float) -> None:
        self._engine = engine
        self._begun_at = begun_at
        self._patterns = [*_patterns(engine), re.compile(engine.log_form.ready)]
        self._heard: list[Heard] = []

    def add(self, lines: Iterable[str], arrived_at: float) -> None:
        """Takes lines that were read just now."""
        telling = [(arrived_at, text) for text in lines if _is_telling(self._patterns, text)]
        self._heard += telling[: MOST_LINES - len(self._heard)]

    def finish(self, ready_at: float | None) -> Timeline:
        """Returns the start as far as it was heard; `ready_at` is when the engine had proved itself, None if it did not."""
        return read_timeline(self._engine, self._heard, self._begun_at, ready_at)


class _Reading:
    """Reads one start, line by line; `is_ready` once the engine said so."""

    def __init__(self, engine: Engine, begun_at: float | None) -> None:
        self.is_ready = False
        self._engine = engine
        self._begun_at = begun_at
        self._begin = self._now = begun_at
        self._said_ready_at: float | None = None
        self._version: str | None = None
        self._spans: list[Span] = []
        self._first_lines: dict[StageName, str] = {}
        self._opened: dict[tuple[str, StageName], float] = {}
        self._ended: dict[str, float] = {}
        self._amounts: dict[StageSign, dict[str, set[int]]] = {}
        form = engine.log_form
        self._signs = [(sign, re.compile(sign.pattern)) for sign in form.signs]
        self._starts, self._ready, self._speaker = (re.compile(one) for one in (form.starts, form.ready, form.speaker))

    def read(self, line: Line) -> None:
        """Takes the next line."""
        if line.at is not None:
            self._begin = line.at if self._begin is None else self._begin
            self._now = line.at
        if found := self._starts.search(line.text):
            self._version = self._version or found.groupdict().get("version")
        for sign, pattern in self._signs:
            if found := pattern.search(line.text):
                self._take(sign, found.groupdict(), line)
        if self._ready.search(line.text):
            self.is_ready, self._said_ready_at = True, self._now

    def _take(self, sign: StageSign, said: dict[str, str | None], line: Line) -> None:
        speaker = self._speaker_of(line)
        if amount := _amount(said):
            self._amounts.setdefault(sign, {}).setdefault(speaker, set()).add(amount)
        if sign.mark == "begin":
            self._first_lines.setdefault(sign.stage, line.text)
            if line.at is not None:
                self._opened.setdefault((speaker, sign.stage), line.at)
        elif span := self._span(sign, said, line, speaker):
            self._first_lines.setdefault(sign.stage, line.text)
            self._spans.append(span)

    def _speaker_of(self, line: Line) -> str:
        found = self._speaker.search(line.text)
        return found[1] if found else ""

    def _span(self, sign: StageSign, said: dict[str, str | None], line: Line, speaker: str) -> Span | None:
        """Returns the time that ends with this line; None where the line tells no end, or nothing tells the begin."""
        if sign.mark == "amount":
            return None
        is_reading = said.get("read") is not None
        begun = self._begin_of(sign, speaker) if not is_reading else None
        took_s = _seconds(said)
        if took_s is not None:
            return self._stated(sign.stage, took_s, line, speaker, is_reading)
        return None if begun is None or line.at is None else Span(sign.stage, begun, line.at, line.text)

    def _begin_of(self, sign: StageSign, speaker: str) -> float | None:
        """Returns when the stage that ends here began: for the same process, else for any, which then handed it on."""
        if sign.mark == "since start":
            return None if any(span.stage == sign.stage for span in self._spans) else self._begin
        open_keys = [key for key in self._opened if key[1] == sign.stage]
        key = next((key for key in open_keys if key[0] == speaker), open_keys[0] if open_keys else None)
        return self._opened.pop(key) if key else None

    def _stated(self, stage: StageName, took_s: float, line: Line, speaker: str, is_reading: bool) -> Span:
        """Returns what a line says itself; a coarse clock may lie a step early, and one process does one thing at a time."""
        before = self._ended.get(speaker)
        if line.at is None:
            end = max(self._now or 0.0, before or 0.0) + took_s
        elif before is not None and line.at <= before + took_s < line.at + self._engine.log_form.tick_s:
            end = before + took_s
        else:
            end = line.at
        self._ended[speaker] = end
        return Span(stage, end - took_s, end, line.text, is_reading)

    def timeline(self, ready_at: float | None) -> Timeline:
        """Returns what was read."""
        begin = self._begin
        end = ready_at if ready_at is not None else self._said_ready_at
        total_s = None if begin is None or end is None else round(max(0.0, end - begin), DIGITS)
        spans = self._placed(begin, end, ready_at)
        shares = share_out(spans)
        return Timeline(
            engine=self._engine.name,
            version=self._version,
            begun_at=self._begun_at,
            is_ready=self.is_ready or ready_at is not None,
            total_s=total_s,
            unexplained_s=None if total_s is None else round(max(0.0, total_s - sum(shares.values())), DIGITS),
            stages=self._stages(spans, shares, begin),
        )

    def _placed(self, begin: float | None, end: float | None, ready_at: float | None) -> list[Span]:
        spans = self._spans
        if ready_at is not None and self._said_ready_at is not None:
            spans = [*spans, Span("first token", min(self._said_ready_at, ready_at), ready_at, PROVED)]
        return clip(spans, -math.inf if begin is None else begin, math.inf if end is None else end)

    def _stages(self, spans: list[Span], shares: dict[StageName, float], begin: float | None) -> tuple[Stage, ...]:
        known = dict.fromkeys([*self._first_lines, *shares])
        stages = [self._stage(name, [span for span in spans if span.stage == name], shares, begin) for name in known]
        return tuple(sorted(stages, key=lambda stage: math.inf if stage.begin_s is None else stage.begin_s))

    def _stage(self, name: StageName, spans: list[Span], shares: dict[StageName, float], begin: float | None) -> Stage:
        reading = [span for span in spans if span.is_reading]
        return Stage(
            name=name,
            begin_s=round(min(span.begin_s for span in spans) - begin, DIGITS) if spans and begin is not None else None,
            took_s=round(shares[name], DIGITS) if name in shares else None,
            line=max(spans, key=lambda span: span.length_s).line if spans else self._first_lines[name],
            bytes=self._bytes(name),
            read_s=round(covered_s(reading), DIGITS) if reading else None,
        )

    def _bytes(self, stage: StageName) -> int | None:
        """Returns what the first sign that states an amount states, over all processes.

        One that a process says twice counts once: a model's own draft head is read from the same files again.
        """
        sign = next((sign for sign, _ in self._signs if sign.stage == stage and sign in self._amounts), None)
        if sign is None:
            return None
        amounts = [sum(each) for each in self._amounts[sign].values()]
        return max(amounts) if sign.is_whole else sum(amounts)


def _seconds(said: dict[str, str | None]) -> float | None:
    """Returns how long a line says that something took; None where it does not, or says nonsense."""
    stated = said.get("took") or said.get("read")
    try:
        if stated is None and said.get("minutes") is None:
            return None
        clock = [float(said.get(name) or 0) for name in ("hours", "minutes", "seconds")]
        seconds = float(stated) if stated is not None else clock[0] * 3600 + clock[1] * 60 + clock[2]
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def _amount(said: dict[str, str | None]) -> int | None:
    """Returns the bytes that a line states; None where it states none, or nonsense."""
    for name, unit in (("gib", GIB), ("mib", MIB)):
        if text := said.get(name):
            try:
                return int(float(text) * unit) or None
            except (ValueError, OverflowError):
                return None
    return None
