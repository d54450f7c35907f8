"""What is done for one load of weights: the disk is measured before it, read ahead beside it, and compared after it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

from stoker.fetch.readahead import ReadAhead
from stoker.records import LoadRate, Memory, Plan, ReadRate, Timeline
from stoker.supervise.loading import measure_weights, say_load

WEIGHTS = ("*.safetensors", "*.gguf")
STAGE = "weights"
END_S = 5.0


def find_weights(plan: Plan) -> list[Path]:
    """Returns the files that hold a plan's weights, in the order in which engines load them."""
    model = Path(plan.model_path) if plan.model_path else None
    if model is None or not model.is_dir():
        return [model] if model is not None and model.is_file() else []
    return next((found for pattern in WEIGHTS if (found := sorted(model.glob(pattern)))), [])


class LoadHelp:
    """Helps one launch; nothing that goes wrong here may end it."""

    def __init__(self, plan: Plan) -> None:
        self._files = find_weights(plan)
        self._rate: ReadRate | None = None
        self._ahead: ReadAhead | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_reading_ahead(self) -> bool:
        """Tells whether weights are being read ahead of their loader."""
        return self._thread is not None and self._thread.is_alive()

    async def measure(self) -> None:
        """Reads the disk for a second at most, before the engine needs it."""
        self._rate = await asyncio.to_thread(measure_weights, self._files)

    def begin(
        self, pids: Callable[[], list[int]], window_bytes: int, floor_bytes: int, read_memory: Callable[[], Memory]
    ) -> None:
        """Begins to read ahead of the loader, in a thread; a window of 0 means that nobody wants it."""
        if window_bytes == 0 or not self._files:
            return
        ahead = ReadAhead(self._files, pids, window_bytes, read_memory=read_memory, floor_bytes=floor_bytes)
        self._ahead, self._thread = ahead, threading.Thread(target=ahead.run, name="read-ahead", daemon=True)
        self._thread.start()

    async def end(self) -> None:
        """Ends the reading ahead; what it still held is dropped."""
        if self._ahead is not None and self._thread is not None:
            self._ahead.stop()
            await asyncio.to_thread(self._thread.join, END_S)
            self._ahead = self._thread = None

    def say(self, timeline: Timeline | None) -> str:
        """Returns what the load took beside what the disk can, or nothing where the log does not tell when it loaded."""
        stages = [one for one in timeline.stages if one.name == STAGE] if timeline else []
        seconds = sum(one.read_s or one.took_s or 0.0 for one in stages)
        if self._rate is None or not seconds:
            return ""
        weights_bytes = sum(file.stat().st_size for file in self._files if file.exists())
        return say_load(LoadRate(weights_bytes, seconds, int(self._rate.bytes_per_s)))
