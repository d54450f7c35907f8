"""Learns what a ratio usually is, and how far its values over some minutes stray from that while all is well. Pure.

Minutes that follow each other are alike: an hour of them strays less than four minutes do, but far more than if they were
independent. So the spread is learnt for each length by itself, from blocks that do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

WINDOWS = (4, 8, 15, 60)
WHOLE_BLOCKS = math.lcm(*WINDOWS)
FIRST_SLOTS = 120  # so many are learnt at once, before anything is judged by them: two busy hours
MEMORY = 12_000  # slots after which an old one has faded to a third: a month of seven busy hours a day
# So many blocks weighs what a spread is taken for before it was seen: a few sessions look more alike than the next ones.
EXPECTED_BLOCKS = 10
Shape = Callable[[float, float], float]


def odds(top: float, bottom: float) -> float:
    """Returns the logarithm of what was accepted for each one rejected: 0.16 strays in it about as far as 0.76 does."""
    return math.log((top + 0.5) / (max(0.0, bottom - top) + 0.5))


def octaves(top: float, bottom: float) -> float:
    """Returns the ratio in doublings; both sides get one more, so that nothing of either has a value too."""
    return math.log2((top + 1) / (bottom + 1))


class Band:
    """The usual value of a ratio of sums, and its spread over `WINDOWS` slots.

    `shape` makes a value of the two sums, and `expected` are the spreads before any was seen.
    """

    def __init__(self, shape: Shape, expected: Sequence[float]) -> None:
        self._shape = shape
        self.count = 0
        self._top, self._bottom = 0.0, 0.0
        self._squares = [spread**2 for spread in expected]
        self._blocks = [EXPECTED_BLOCKS] * len(WINDOWS)
        self._sums = [(0.0, 0.0)] * len(WINDOWS)

    @property
    def is_learnt(self) -> bool:
        """Tells whether enough was seen to judge by."""
        return self.count >= FIRST_SLOTS

    @property
    def centre(self) -> float:
        """The usual value, in the band's shape."""
        return self._shape(self._top, self._bottom)

    @property
    def ratio(self) -> float:
        """The usual ratio of sums."""
        return self._top / self._bottom if self._bottom else 0.0

    def learn(self, top: float, bottom: float) -> None:
        """Takes one slot in which all was well."""
        self.count += 1
        fade = 1.0 if self.count <= MEMORY else 1 - 1 / MEMORY
        self._top, self._bottom = self._top * fade + top, self._bottom * fade + bottom
        for index, window in enumerate(WINDOWS):
            block = (self._sums[index][0] + top, self._sums[index][1] + bottom)
            is_whole = self.count % window == 0
            self._sums[index] = (0.0, 0.0) if is_whole else block
            if is_whole:
                self._take_block(index, self._shape(*block))

    def _take_block(self, index: int, value: float) -> None:
        self._blocks[index] += 1
        share = 1 / min(self._blocks[index], MEMORY // WINDOWS[index])
        self._squares[index] += ((value - self.centre) ** 2 - self._squares[index]) * share

    def spread(self, window: int) -> float:
        """Returns the standard deviation over so many slots."""
        return math.sqrt(self._squares[WINDOWS.index(window)])

    def strays(self, top: float, bottom: float) -> float:
        """Returns by how much these sums lie above the usual value; below it is negative."""
        return self._shape(top, bottom) - self.centre

    def keep(self) -> tuple[float, ...]:
        """Returns everything that was learnt, as numbers."""
        return (float(self.count), self._top, self._bottom, *self._squares, *map(float, self._blocks))

    def restore(self, kept: Sequence[float]) -> None:
        """Takes what was kept; numbers that no band kept are left. A block that was under way begins anew."""
        size = len(WINDOWS)
        if len(kept) != 3 + 2 * size or not all(math.isfinite(one) and one >= 0 for one in kept) or kept[0] < 1:
            return
        self.count = int(kept[0]) // WHOLE_BLOCKS * WHOLE_BLOCKS  # blocks begin where the count says that they do
        self._top, self._bottom = kept[1], kept[2]
        self._squares = list(kept[3 : 3 + size])
        self._blocks = [int(one) for one in kept[3 + size :]]
