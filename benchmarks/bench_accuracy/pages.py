"""Makes tables of what the tools said and what was true."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.bench_accuracy.scenes import Scene, Truth
from benchmarks.bench_accuracy.tools import TOOLS

NOTHING = "-"


class Row(NamedTuple):
    """One tool in one scene: what it reported, what it cost, and how loaded the machine was."""

    scene: Scene
    tool: str
    truth: Truth | None
    said: dict[str, Any]
    cpu_s: float
    wall_s: float
    load: float

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

    def brief(self) -> str:
        """Returns its errors in a line."""
        return f"TTFT {_signed(self.ttft_off_ms(), 2)} ms, ms/token {_signed(self.itl_off(), 2)} %, CPU {self.cpu_s:.2f} s"


def pages(rows: Sequence[Row], tools: Sequence[str]) -> str:
    """Returns all tables."""
    tables: list[tuple[str, Callable[[Row], str]]] = [
        ("Time to the first token: error in ms", lambda row: _signed(row.ttft_off_ms(), 1)),
        ("Time per token: error in %", lambda row: _signed(row.itl_off(), 2)),
        ("Prefill rate: error in %", lambda row: _signed(row.prefill_off(), 1)),
        ("Total rate, within the window that each tool means: error in %", lambda row: _signed(row.total_off(), 2)),
        ("Processor time of the tool, its start with it: s", lambda row: f"{row.cpu_s:.2f}"),
        ("Time beside that in which the server answered it: s", lambda row: _plain(row.overhead_s(), 2)),
        ("The server's worst lateness of one write: ms", lambda row: _plain(row.truth.late_ms if row.truth else None, 1)),
    ]
    heads = [_machine(rows)]
    return "\n\n".join([*heads, *(f"**{title}**\n\n{_table(rows, tools, cell)}" for title, cell in tables)])


def _machine(rows: Sequence[Row]) -> str:
    loads = [row.load for row in rows]
    return (
        f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()};"
        f" load average {min(loads):.1f} to {max(loads):.1f}. One run a cell."
    )


def _table(rows: Sequence[Row], tools: Sequence[str], cell: Callable[[Row], str]) -> str:
    lines = ["| scene | " + " | ".join(tools) + " |", "|---" * (len(tools) + 1) + "|"]
    for name in dict.fromkeys(row.scene.name for row in rows):
        found = {row.tool: cell(row) for row in rows if row.scene.name == name}
        lines.append(f"| {name} | " + " | ".join(found.get(tool, NOTHING) for tool in tools) + " |")
    return "\n".join(lines)


def _signed(value: float | None, places: int) -> str:
    return NOTHING if value is None else f"{value:+.{places}f}"


def _plain(value: float | None, places: int) -> str:
    return NOTHING if value is None else f"{value:.{places}f}"
