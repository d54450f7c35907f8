"""A wire that delays, jitters and loses frames by a seeded schedule, in user space: not every kernel has netem.

A process of its own carries whole frames between two TAP devices. These take no offloads (they are made without
IFF_VNET_HDR), so that the kernels cut their segments and make their checksums themselves, as for a real card.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

SET_INTERFACE, TAP, NO_INFO = 0x400454CA, 0x2, 0x1000  # TUNSETIFF, IFF_TAP, IFF_NO_PI
FRAME_BYTES = 65536
BATCH = 64  # frames of one end, so that the other one has its turn
OUT, BACK = "out", "back"  # to the far end, and from it
WAYS = (OUT, BACK)
SYN, SYN_ACK = 0x02, 0x12


class Faults(NamedTuple):
    """What one way does to frames; with jitter one may overtake another, as with netem."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0  # of all frames, 0..1


class Counts(NamedTuple):
    """What became of the frames of one way; `opened` are connections that were asked for, `held` frames are under way."""

    carried: int = 0
    lost: int = 0
    opened: int = 0
    held: int = 0


class Schedule:
    """The fate of one frame after another, which its seed and the faults alone decide."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self.faults = Faults()

    def next_delay_s(self) -> float | None:
        """Returns how long the next frame takes; None where it is lost."""
        luck, shift = self._random.random(), self._random.uniform(-1.0, 1.0)
        if luck < self.faults.loss:
            return None
        return max(0.0, self.faults.delay_s + shift * self.faults.jitter_s)


class Way:
    """One direction: where its frames come from, where they go, and which are under way."""

    def __init__(self, source: int, target: int, seed: str) -> None:
        self.source, self._target = source, target
        self.schedule = Schedule(seed)
        self.syns_to_lose = 0
        self._held: list[tuple[float, int, bytes]] = []
        self._read = self._carried = self._lost = self._opened = 0

    @property
    def counts(self) -> Counts:
        """What became of the frames so far."""
        return Counts(self._carried, self._lost, self._opened, len(self._held))

    @property
    def due_s(self) -> float | None:
        """When the next frame arrives."""
        return self._held[0][0] if self._held else None

    def take(self) -> None:
        """Reads what was sent, and decides what becomes of it."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(BATCH):
                frame = os.read(self.source, FRAME_BYTES)
                self._read += 1
                delay_s = self.schedule.next_delay_s()
                if _flags(frame) in (SYN, SYN_ACK):
                    self._opened += 1
                    if self.syns_to_lose:
                        self.syns_to_lose, delay_s = self.syns_to_lose - 1, None
                if delay_s is None:
                    self._lost += 1
                else:
                    heapq.heappush(self._held, (time.monotonic() + delay_s, self._read, frame))

    def deliver(self) -> None:
        """Hands on what is due; an end that is down, or takes no more, loses it."""
        now_s = time.monotonic()
        while self._held and self._held[0][0] <= now_s:
            try:
                os.write(self._target, heapq.heappop(self._held)[2])
                self._carried += 1
            except OSError:
                self._lost += 1


def _flags(frame: bytes) -> int | None:
    """Returns which of SYN and ACK a TCP frame over IPv4 has; None for any other frame."""
    if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
        return None
    return frame[14 + (frame[14] & 0xF) * 4 + 13] & SYN_ACK


def carry(ways: dict[str, Way]) -> None:
    """Carries frames, and does what its standard input says, until that ends; each line is answered by the counts."""
    poll = select.epoll()
    for descriptor in (0, *(way.source for way in ways.values())):
        poll.register(descriptor, select.EPOLLIN)
    while True:
        due_s = min((way.due_s for way in ways.values() if way.due_s is not None), default=None)
        ready = dict(poll.poll(None if due_s is None else max(0.0, due_s - time.monotonic())))
        for way in ways.values():
            if way.source in ready:
                way.take()
            way.deliver()
        if 0 in ready and not _obey(ways, sys.stdin.readline()):
            return


def _obey(ways: dict[str, Way], line: str) -> bool:
    """Does what a line says, and answers it; returns False where there are no more."""
    if not line:
        return False
    for name, said in json.loads(line).items():
        if isinstance(said, int):
            ways[name].syns_to_lose = said
        else:
            ways[name].schedule.faults = Faults(*said)
    print(json.dumps({name: way.counts for name, way in ways.items()}), flush=True)
    return True


def open_tap(name: str) -> int:
    """Makes a TAP device in the network of this thread; it lives as long as its descriptor."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, SET_INTERFACE, struct.pack("16sH22x", name.encode(), TAP | NO_INFO))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class Wire:
    """A wire between two TAP devices, whose descriptors it takes over; it does what it is told before it returns."""

    def __init__(self, near: int, far: int, seed: int) -> None:
        words = [sys.executable, __file__, str(near), str(far), str(seed)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(near, far), text=True
        )  # fmt: skip
        for descriptor in (near, far):
            os.close(descriptor)
        self._tell({})

    def _tell(self, words: dict[str, object]) -> dict[str, Counts]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return {name: Counts(*counts) for name, counts in json.loads(self._process.stdout.readline()).items()}

    def be(self, delay_s: float = 0.0, jitter_s: float = 0.0, loss: float = 0.0, ways: Iterable[str] = WAYS) -> None:
        """Delays and loses from now on; ways that are not named are good."""
        bad = Faults(delay_s, jitter_s, loss)
        self._tell({name: bad if name in ways else Faults() for name in WAYS})

    def lose_syns(self, count: int, way: str = OUT) -> None:
        """Loses the next frames that open a connection, or answer that on the way back, whatever else is lost."""
        self._tell({way: count})

    @property
    def counts(self) -> dict[str, Counts]:
        """What became of the frames so far."""
        return self._tell({})

    def close(self) -> None:
        """Ends it, and its devices with it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def main(near: int, far: int, seed: str) -> None:
    """Carries frames between two TAP devices until nobody wants them any more."""
    carry({OUT: Way(near, far, seed + OUT), BACK: Way(far, near, seed + BACK)})


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
