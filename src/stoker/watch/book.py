"""Keeps the alerts: held until they have been so for long enough, firing, resolved, and silenced. Pure.

An alert that flaps is one alert: it is resolved only when it was not so for as long as it takes to fire, and a minute at
least. What was not looked at stays as it is: at night nobody drafts, and a bad draft is not mended by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from stoker.records.alerting import AlertRule
from stoker.records.watching import Alert, Silence
from stoker.watch.table import Looked

CLEAR_S = 60.0
ANY = "*"
NOT_LASTED: Mapping[tuple[str, str], float] = MappingProxyType({})


class Clock(NamedTuple):
    """A moment: seconds of a clock that never goes back, and since the epoch, which may jump."""

    at_s: float
    epoch: float


class _Line(msgspec.Struct):
    """An alert with the times by the clock that never goes back."""

    alert: Alert
    since_s: float
    last_s: float


class AlertBook:
    """All alerts that are held or fire."""

    def __init__(self, rules: Mapping[str, AlertRule]) -> None:
        self._rules = rules
        self._lines: dict[tuple[str, str], _Line] = {}
        self._silences: list[Silence] = []

    def resume(self, firing: Iterable[Alert], clock: Clock) -> None:
        """Takes what fired when a former daemon ended: it goes on until it is looked at and not so."""
        for alert in firing:
            if alert.id in self._rules:
                self._lines[alert.id, alert.about] = _Line(alert, clock.at_s, clock.at_s)

    def take(self, looked: Looked, clock: Clock, lasted_s: Mapping[tuple[str, str], float] = NOT_LASTED) -> list[Alert]:
        """Takes what was looked at; returns the alerts that fire or are resolved from now on.

        `lasted_s` tells for how long something had been so when it could first be told.
        """
        changed = (self._take_one(key, why, clock, lasted_s.get(key, 0.0)) for key, why in looked.items())
        return [alert for alert in changed if alert is not None]

    def _take_one(self, key: tuple[str, str], why: str | None, clock: Clock, lasted_s: float) -> Alert | None:
        line = self._lines.get(key)
        if why is None:
            return None if line is None else self._clear(key, line, clock)
        if line is None:
            begun = Clock(clock.at_s - lasted_s, clock.epoch - lasted_s)
            line = self._lines[key] = _Line(self._make(key, why, begun), begun.at_s, clock.at_s)
        line.last_s = clock.at_s
        line.alert = msgspec.structs.replace(line.alert, why=why)
        is_due = clock.at_s - line.since_s >= self._rules[key[0]].for_s
        if line.alert.state == "firing" or not is_due:
            return None
        line.alert = msgspec.structs.replace(line.alert, state="firing", fired=clock.epoch)
        return self._shown(line.alert, clock.epoch)

    def _clear(self, key: tuple[str, str], line: _Line, clock: Clock) -> Alert | None:
        is_held = line.alert.state == "held"
        if not is_held and clock.at_s - line.last_s < max(CLEAR_S, self._rules[key[0]].for_s):
            return None
        del self._lines[key]
        if is_held:
            return None
        return self._shown(msgspec.structs.replace(line.alert, state="resolved", resolved=clock.epoch), clock.epoch)

    def drop(self, about: str, clock: Clock) -> list[Alert]:
        """Resolves everything about somebody who is not there any more."""
        gone = [key for key in self._lines if key[1] == about]
        ended = [self._lines.pop(key).alert for key in gone]
        return [
            self._shown(msgspec.structs.replace(one, state="resolved", resolved=clock.epoch), clock.epoch)
            for one in ended
            if one.state == "firing"
        ]

    def _make(self, key: tuple[str, str], why: str, clock: Clock) -> Alert:
        rule, about = self._rules[key[0]], key[1]
        words = {"service": about, "gpu": about, "holds": about, "box": about}
        title, fix = rule.title.format_map(words), rule.fix.format_map(words)
        return Alert(rule.id, about, rule.severity, title, why, fix, "held", clock.epoch)

    def silence(self, silence: Silence) -> None:
        """Keeps quiet about some alerts; a silence of the same replaces it, one that lies in the past ends it."""
        self._silences = [one for one in self._silences if (one.id, one.about) != (silence.id, silence.about)]
        self._silences.append(silence)

    def silences(self, epoch: float) -> tuple[Silence, ...]:
        """Returns those that last."""
        self._silences = [one for one in self._silences if one.until > epoch]
        return tuple(self._silences)

    def alerts(self, epoch: float) -> tuple[Alert, ...]:
        """Returns all that are held or fire, the firing and the worst first."""
        shown = [self._shown(line.alert, epoch) for line in self._lines.values()]
        order = ("critical", "warning", "info")
        return tuple(sorted(shown, key=lambda one: (one.state == "held", order.index(one.severity), one.since)))

    def _shown(self, alert: Alert, epoch: float) -> Alert:
        meant = [one.until for one in self.silences(epoch) if one.id in (ANY, alert.id) and one.about in (ANY, alert.about)]
        return msgspec.structs.replace(alert, silenced_until=max(meant, default=None))
