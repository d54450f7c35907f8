"""The scenes that tools measure, and what the server knows to be true of each."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

TOKENS = 97  # one of the prefill and 96 of decoding: a multiple of every burst
REQUESTS = {1: 3, 8: 16, 64: 128}


class Scene(NamedTuple):
    """A schedule, and how much is asked of it."""

    name: str
    schedule: dict[str, Any]
    concurrency: int = 1
    requests: int = 2
    tokens: int = TOKENS


GRID = [
    Scene(
        f"{step} ms, {burst} a chunk, {count} at once",
        {"step_ms": step, "burst": burst, "drafts": 3 if burst > 1 else 0}, count, REQUESTS[count],
    )
    for step in (20, 5) for burst in (1, 3) for count in REQUESTS
]  # fmt: skip
ODD = [
    Scene("an early role chunk", {"role_ms": 0}),
    Scene("reasoning_content", {"field": "reasoning_content"}),
    Scene("reasoning", {"field": "reasoning"}),
    Scene("4 in the first chunk too", {"burst": 4, "first_burst": 4}, tokens=32),
    Scene("the same, no token ids", {"burst": 4, "first_burst": 4, "ids": False}, tokens=32),
    Scene("3 a chunk, no usage", {"burst": 3, "usage": False, "ids": False}),
    Scene("a proxy flushing every 4th", {"coalesce": 4}),
    Scene("half a second of tail", {"tail_ms": 500}),
]
SCENES = [*GRID, *ODD]


class Truth(NamedTuple):
    """What the server knows of the requests that were measured; `busy_s` is from its first request to its last answer."""

    ttft_ms: float
    itl_ms: float
    prefill_tps: float
    tps_decode: float
    tps_e2e: float
    late_ms: float
    busy_s: float


def truth_of(log: Sequence[dict[str, Any]], scene: Scene) -> Truth | None:
    """Returns the truth of the last requests of a scene's length: those before were a tool's warm-up."""
    rows = [row for row in log if row["tokens"] == scene.tokens][-scene.requests :]
    if not rows:
        return None
    later = [row["tokens"] - row["first_tokens"] for row in rows]
    groups = [rows[begin : begin + scene.concurrency] for begin in range(0, len(rows), scene.concurrency)]
    span_s = max(row["last_s"] for row in rows) - min(row["received_s"] for row in rows)
    return Truth(
        ttft_ms=1e3 * fmean(row["first_s"] - row["received_s"] for row in rows),
        itl_ms=1e3 * fmean((row["last_s"] - row["first_s"]) / count for row, count in zip(rows, later, strict=True)),
        prefill_tps=fmean(row["prompt_tokens"] / (row["first_s"] - row["received_s"]) for row in rows),
        tps_decode=fmean(_decode_tps(group) for group in groups),
        tps_e2e=sum(row["tokens"] for row in rows) / span_s,
        late_ms=1e3 * max(row["late_s"] for row in rows),
        busy_s=max(row["ended_s"] for row in log) - min(row["received_s"] for row in log),
    )


def _decode_tps(rows: Sequence[dict[str, Any]]) -> float:
    tokens = sum(row["tokens"] - row["first_tokens"] for row in rows)
    return float(tokens / (max(row["last_s"] for row in rows) - min(row["first_s"] for row in rows)))
