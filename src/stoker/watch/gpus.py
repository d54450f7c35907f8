"""Judges the GPUs: heat, power, clocks that are stuck, and work that reads busy and is none. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from stoker.records import Gpu
from stoker.watch.table import Looked, threshold

BUSY_PCT = 90
HEAT = "heat"
POWER = ("the power limit", "the power supply's brake", "a hardware slowdown")
WORK_STEP_S, WORK_LOOKS, LEAST_LOOKS = 60.0, 120, 10


class GpuCheck:
    """Judges one GPU; remembers what it draws when it works, two hours of such work."""

    def __init__(self) -> None:
        self._drawn_w: list[float] = []
        self._noted_s = float("-inf")

    def look(self, at_s: float, name: str, gpu: Gpu) -> Looked:
        """Returns what is wrong; what the driver does not tell is not looked at."""
        looked: Looked = {}
        if gpu.slowed_by is not None:
            looked["gpu-slowed-by-heat", name] = _judge_heat(gpu)
            looked["gpu-slowed-by-power", name] = _judge_power(gpu)
        if gpu.busy_clock_mhz is not None and gpu.sm_clock_max_mhz:
            looked["gpu-clock-stuck", name] = _judge_clock(gpu)
        if gpu.power_w is not None and gpu.utilisation_pct is not None:
            looked["gpu-busy-without-power", name] = self._judge_draw(at_s, gpu.power_w, gpu.utilisation_pct)
        return looked

    def _judge_draw(self, at_s: float, power_w: float, busy_pct: int) -> str | None:
        if busy_pct <= BUSY_PCT:
            return None
        usual_w = median(self._drawn_w) if len(self._drawn_w) >= LEAST_LOOKS else None
        if usual_w is not None and power_w < threshold("gpu-busy-without-power") * usual_w:
            return f"it reads {busy_pct} % busy and draws {power_w:.0f} W; {usual_w:.0f} W are usual when it works"
        if at_s - self._noted_s >= WORK_STEP_S:
            self._noted_s = at_s
            self._drawn_w = [*self._drawn_w[-WORK_LOOKS:], power_w]
        return None


def _judge_heat(gpu: Gpu) -> str | None:
    reasons = [one for one in gpu.slowed_by or () if one.startswith(HEAT)]
    at = "" if gpu.temperature_c is None else f" at {gpu.temperature_c} C"
    return f"its driver slows it for {' and '.join(reasons)}{at}" if reasons else None


def _judge_power(gpu: Gpu) -> str | None:
    reasons = [one for one in gpu.slowed_by or () if one in POWER]
    drawn = "" if gpu.power_w is None else f"; it draws {gpu.power_w:.0f} W"
    return f"its driver slows it for {' and '.join(reasons)}{drawn}" if reasons else None


def _judge_clock(gpu: Gpu) -> str | None:
    clock_mhz, most_mhz = gpu.busy_clock_mhz or 0, gpu.sm_clock_max_mhz or 0
    if gpu.slowed_by or clock_mhz >= threshold("gpu-clock-stuck") * most_mhz:
        return None
    return f"it is busy at {clock_mhz} MHz of {most_mhz}, and its driver gives no reason"


class GpusCheck:
    """Judges all GPUs of the machine."""

    def __init__(self) -> None:
        self._checks: dict[int, GpuCheck] = {}

    def look(self, at_s: float, gpus: Sequence[Gpu]) -> Looked:
        """Returns what is wrong, by the GPU's number."""
        looked: Looked = {}
        for index, gpu in enumerate(gpus):
            looked |= self._checks.setdefault(index, GpuCheck()).look(at_s, str(index), gpu)
        return looked
