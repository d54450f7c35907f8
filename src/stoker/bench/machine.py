"""Looks at the machine beside a measurement, twice a second in a thread of its own: memory, pressure, power, clocks, heat.

The times of requests are the kernel's, so that what this thread costs changes none of them.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from stoker.box import Box
from stoker.records import Gpu, MachineSeen

PAUSE_S = 0.5
DRIVER = "/proc/driver/nvidia/version"
ZONES = "/sys/class/thermal"
MHZ = 1e6
# What the driver's reasons mean for a measurement; idle clocks and clocks that somebody set are no slowing down.
SLOWING = ("the power limit", "a hardware slowdown", "heat (software)", "heat (hardware)", "the power supply's brake")
AVAILABLE = re.compile(r"^MemAvailable:\s+(\d+) kB", re.MULTILINE)
STALLED = re.compile(r"^full .*total=(\d+)", re.MULTILINE)

T = TypeVar("T")
ReadGpus = Callable[[], tuple[Gpu, ...]]


class Sample(NamedTuple):
    """The machine at a moment, on the clock of `time.perf_counter`."""

    at_s: float
    available_bytes: int | None
    gpus: tuple[Gpu, ...]
    heat_c: float | None


class Mark(NamedTuple):
    """The counters at a moment: processor time of the engine and of us, and the time that everything waited for memory."""

    at_s: float
    stalled_us: int | None
    engine_s: float | None
    client_s: float


class MachineWatch:
    """Collects samples until it is closed; `engine_s` tells the processor time of the engine's processes."""

    def __init__(self, box: Box, engine_s: Callable[[], float | None]) -> None:
        self._box, self._engine_s = box, engine_s
        self._samples: list[Sample] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="machine", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._is_over.set()
        self._thread.join()

    def mark(self) -> Mark:
        """Notes the counters."""
        stalled = STALLED.search(self._box.read("/proc/pressure/memory") or "")
        return Mark(time.perf_counter(), int(stalled[1]) if stalled else None, self._engine_s(), time.process_time())

    def since(self, begin: Mark) -> MachineSeen:
        """Returns what was seen since a mark."""
        end = self.mark()
        between = [one for one in list(self._samples) if begin.at_s <= one.at_s <= end.at_s]
        return sum_up([*between, Sample(end.at_s, self._available(), (), None)], begin, end)

    def samples(self) -> tuple[Sample, ...]:
        """Returns all samples so far, for a time series."""
        return tuple(self._samples)

    # In the thread.

    def _run(self) -> None:
        with self._gpus() as read_gpus:
            while not self._is_over.is_set():
                self._samples.append(Sample(time.perf_counter(), self._available(), read_gpus(), self._heat()))
                self._is_over.wait(PAUSE_S)

    @contextlib.contextmanager
    def _gpus(self) -> Iterator[ReadGpus]:
        if self._box.read(DRIVER) is None:  # no driver, and importing its library costs more than all samples
            yield tuple
            return
        from stoker.facts.machine.nvidia import watching_gpus

        with watching_gpus() as read:
            yield read

    def _available(self) -> int | None:
        found = AVAILABLE.search(self._box.read("/proc/meminfo") or "")
        return int(found[1]) * 1024 if found else None

    def _heat(self) -> float | None:
        zones = [name for name in self._box.names(ZONES) if name.startswith("thermal_zone")]
        told = [self._box.read(f"{ZONES}/{name}/temp") for name in zones]
        found = [int(text) / 1000 for text in told if text and text.strip().lstrip("-").isdigit()]
        return max(found, default=None)


def sum_up(samples: Sequence[Sample], begin: Mark, end: Mark) -> MachineSeen:
    """Returns what samples and counters between two marks say; pure."""
    gpus = [gpu for one in samples for gpu in one.gpus]
    power = [sum(known) for one in samples if (known := [gpu.power_w for gpu in one.gpus if gpu.power_w is not None])]
    clocks = [gpu.busy_clock_mhz for gpu in gpus if gpu.busy_clock_mhz is not None]
    heat = [gpu.temperature_c for gpu in gpus if gpu.temperature_c is not None]
    slowed = sorted({reason for gpu in gpus for reason in gpu.slowed_by or () if reason in SLOWING})
    took_s = end.at_s - begin.at_s
    return MachineSeen(
        available_low_bytes=min((one.available_bytes for one in samples if one.available_bytes is not None), default=None),
        memory_pressure=_per_s(begin.stalled_us, end.stalled_us, took_s * 1e6),
        power_mean_w=sum(power) / len(power) if power else None,
        gpu_clock_low_hz=min(clocks) * MHZ if clocks else None,
        temperature_high_c=max(
            [*heat, *(one.heat_c for one in samples if one.heat_c is not None and not heat)], default=None
        ),
        engine_cores=_per_s(begin.engine_s, end.engine_s, took_s),
        client_cores=_per_s(begin.client_s, end.client_s, took_s),
        throttled=", ".join(slowed),
    )


def _per_s(before: float | None, after: float | None, took: float) -> float | None:
    return None if before is None or after is None or took <= 0 else max(0.0, after - before) / took


def join_seen(seen: Sequence[MachineSeen]) -> MachineSeen | None:
    """Returns what was seen over several repeats: the worst of each, the mean of what is a rate; pure."""
    if not seen:
        return None
    reasons = sorted({reason for one in seen if one.throttled for reason in one.throttled.split(", ")})
    return MachineSeen(
        available_low_bytes=min(_known(one.available_low_bytes for one in seen), default=None),
        memory_pressure=max(_known(one.memory_pressure for one in seen), default=None),
        power_mean_w=_mean(_known(one.power_mean_w for one in seen)),
        gpu_clock_low_hz=min(_known(one.gpu_clock_low_hz for one in seen), default=None),
        temperature_high_c=max(_known(one.temperature_high_c for one in seen), default=None),
        engine_cores=_mean(_known(one.engine_cores for one in seen)),
        client_cores=_mean(_known(one.client_cores for one in seen)),
        throttled=", ".join(reasons),
    )


def _known(values: Iterator[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
