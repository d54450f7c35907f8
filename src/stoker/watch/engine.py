"""Judges one engine by its own counters: frozen, silent about itself, queueing, stalling, its drafts. Pure."""

from __future__ import annotations

from stoker.watch.samples import GAP_S, EngineSample, Growth, grown
from stoker.watch.slots import SlotMaker
from stoker.watch.speculation import BELOW, DECAYED, DROPPED, OTHER_WORK, Limits, SpeculationCheck
from stoker.watch.table import Looked, threshold

QUEUE_S = 600.0
STALLED_LENGTH = 1.3  # tokens a verify step, as in the alert's condition
ACCEPT_SLOTS = 15


def read_limits() -> Limits:
    """Returns the numbers of the table for speculation."""
    return Limits(threshold(DROPPED), threshold(DECAYED), threshold(BELOW))


class EngineCheck:
    """Judges one service under one method of speculation (`off` for none)."""

    def __init__(self, service: str, method: str) -> None:
        self.method = method
        self.drafts = SpeculationCheck(read_limits(), has_low_rates=method == "ngram")
        self.growth: Growth | None = None
        self._service = service
        self._slots = SlotMaker()
        self._before: EngineSample | None = None
        self._last_work: tuple[int, object] | None = None  # at the last look, whether it gave metrics or not
        self._still_since_s: float | None = None
        self._short_since_s: float | None = None

    def look(self, sample: EngineSample, silent_s: float) -> Looked:
        """Returns what is wrong; `silent_s` is for how long it has had requests and sent nothing to any of them."""
        looked: Looked = {("engine-metrics-vanished", self._service): sample.lost or None}
        last, self._last_work = self._last_work, (sample.launch, sample.work)
        moved = last != self._last_work
        looked["engine-frozen", self._service] = self._judge_still(sample, moved, silent_s)
        if not sample.lost:
            looked |= self._look_at_counters(sample)
        return looked

    def _look_at_counters(self, sample: EngineSample) -> Looked:
        before, self._before = self._before, sample
        if before is not None and before.launch != sample.launch:
            self.drafts.begin_launch()
        self.growth = grown(before, sample)
        slot = self._slots.take(self.growth)
        if slot is not None:
            self.drafts.take(slot)
        verdict = self.drafts.verdict
        name = self._service
        looked: Looked = {(alert, name): None for alert in (DROPPED, DECAYED, BELOW, OTHER_WORK)}
        if verdict is not None:
            looked[verdict.id, name] = verdict.why
        return looked | {
            ("engine-metrics-odd", name): sample.odd or None,
            ("queue-long", name): self._judge_queue(sample),
            ("speculation-stalls", name): self._judge_stalls(sample),
        }

    def _judge_still(self, sample: EngineSample, moved: bool, silent_s: float) -> str | None:
        busy = max(sample.requests, sample.running or 0)
        if moved or not busy or self._still_since_s is None:
            self._still_since_s = sample.at_s
            return None
        still_s = sample.at_s - self._still_since_s
        # Requests past the gateway say nothing to us: then the engine's own counters have to do.
        quiet_s = min(still_s, silent_s) if sample.requests else still_s
        if quiet_s < threshold("engine-frozen"):
            return None
        return f"{busy} requests run, and for {quiet_s:.0f} s no counter moved and no byte came"

    def _judge_queue(self, sample: EngineSample) -> str | None:
        if sample.waiting is None or sample.waiting < threshold("queue-long"):
            self._short_since_s = None
            return None
        since_s = self._short_since_s = sample.at_s if self._short_since_s is None else self._short_since_s
        if sample.at_s - since_s < QUEUE_S:
            return None
        return f"{sample.waiting} wait, and never were fewer than {threshold('queue-long'):.0f} in ten minutes"

    def _judge_stalls(self, sample: EngineSample) -> str | None:
        seen = self.drafts.seen(ACCEPT_SLOTS)
        if sample.stall_s is None or not seen.steps:
            return None
        length = 1 + seen.accepted / seen.steps
        if sample.stall_s <= threshold("speculation-stalls") or length >= STALLED_LENGTH:
            return None
        return f"one of a hundred tokens comes {sample.stall_s * 1000:.0f} ms late at {length:.2f} tokens a verify step"

    def lasted_s(self) -> dict[tuple[str, str], float]:
        """Returns for how long what is said of the drafts has been so at least: its window's length."""
        verdict = self.drafts.verdict
        return {} if verdict is None else {(verdict.id, self._service): verdict.lasted_s}

    def look_away(self) -> Looked:
        """Returns what cannot be so where no engine serves; what its drafts are worth stays as it was last seen."""
        self._still_since_s = self._short_since_s = None
        alerts = ("engine-frozen", "engine-metrics-vanished", "engine-metrics-odd", "queue-long", "speculation-stalls")
        return {(alert, self._service): None for alert in alerts}

    def begin_anew(self) -> None:
        """Leaves out what lies since the last look, in which more was asked than users did."""
        self._before = self._last_work = None

    def forget_gap(self, at_s: float) -> None:
        """Drops what was seen before a time in which nobody watched."""
        if self._before is not None and at_s - self._before.at_s > GAP_S:
            self._still_since_s = self._short_since_s = None
