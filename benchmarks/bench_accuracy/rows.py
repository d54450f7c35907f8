"""What one tool said of one scene, how far off it was, and how rows are kept in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.bench_accuracy.scenes import Scene, Truth
from benchmarks.bench_accuracy.tools import TOOLS

NOTHING = "-"


class Row(NamedTuple):
    """One tool in one scene, once: what it reported, what it cost, how loaded the machine was, and which it was."""

    scene: Scene
    tool: str
    truth: Truth | None
    said: dict[str, Any]
    cpu_s: float
    wall_s: float
    load: float
    machine: str = ""

    def share_off(self, ours: str, truth: float | None) -> float | None:
        """Returns by how many per cent a figure is off."""
        said = self.said.get(ours)
        return None if said is None or not truth else 100 * (said - truth) / truth

    def ttft_off_ms(self) -> float | None:
        """Returns by how much the time to the first token is off."""
        said = self.said.get("ttft_ms")
        return None if said is None or self.truth is None else said - self.truth.ttft_ms

    def itl_off(self) -> float | None:
        """Returns by how many per cent the time per token is off."""
        return self.share_off("itl_ms", self.truth.itl_ms if self.truth else None)

    def prefill_off(self) -> float | None:
        """Returns by how many per cent the prefill rate is off."""
        return self.share_off("prefill_tps", self.truth.prefill_tps if self.truth else None)

    def total_off(self) -> float | None:
        """Returns by how many per cent the total rate is off, within the window that the tool means."""
        if self.truth is None:
            return None
        return self.share_off(
            "tps_total", self.truth.tps_decode if TOOLS[self.tool].window == "decode" else self.truth.tps_e2e
        )

    def overhead_s(self) -> float | None:
        """Returns how long it ran beside the time in which the server answered it."""
        return None if self.truth is None else self.wall_s - self.truth.busy_s

    def late_ms(self) -> float | None:
        """Returns by how much the server's latest write was late."""
        return None if self.truth is None else self.truth.late_ms

    def brief(self) -> str:
        """Returns its errors in a line."""
        return f"TTFT {signed(self.ttft_off_ms(), 2)} ms, ms/token {signed(self.itl_off(), 3)} %, CPU {self.cpu_s:.2f} s"


def keep_rows(file: Path, rows: Iterable[Row]) -> None:
    """Adds rows to a file, a line each."""
    with file.open("ab") as kept:
        kept.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def read_rows(file: Path) -> list[Row]:
    """Returns the rows of a file; none where there is no file yet."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Row) for line in lines]


def signed(value: float | None, places: int) -> str:
    """Returns an error with its sign."""
    return NOTHING if value is None else f"{value:+.{places}f}"
