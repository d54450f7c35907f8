"""Reads one start line by line: what each line says of a stage becomes a span of time, and these the stages. Pure."""

from __future__ import annotations

import math
import re

from stoker.engines import Engine
from stoker.records import GIB, MIB, Stage, StageName, StageSign, Timeline
from stoker.supervise.starts.log_clock import Line
from stoker.supervise.starts.spans import Span, clip, covered_s, share_out

DIGITS = 3  # of seconds: no log tells more that matters
PROVED = "a first answer, asked for by Stoker"
GATED = "what has to pass before READY, asked for by Stoker"


class StageReader:
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

    def timeline(self, ready_at: float | None, proved_at: float | None = None) -> Timeline:
        """Returns what was read; where a gate came between the first answer and READY, `proved_at` parts the two."""
        begin = self._begin
        end = ready_at if ready_at is not None else self._said_ready_at
        total_s = None if begin is None or end is None else round(max(0.0, end - begin), DIGITS)
        spans = [*self._placed(begin, end, proved_at or ready_at), *_gate(proved_at, ready_at)]
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


def _gate(proved_at: float | None, ready_at: float | None) -> list[Span]:
    if proved_at is None or ready_at is None or ready_at <= proved_at:
        return []
    return [Span("gate", proved_at, ready_at, GATED)]


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
