"""Makes cells of what was asked for; a trace is one cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from stoker.bench.arrivals import read_trace
from stoker.bench.cell import Settings
from stoker.bench.intervals import median_of
from stoker.errors import WrongUse
from stoker.records import Arrivals, BenchCell, BenchLoad


class Grid(NamedTuple):
    """What is to be measured: every prompt length with every other thing; `loads` in the order in which they are tried."""

    prompts: tuple[int, ...]
    new: tuple[int, ...]
    depths: tuple[int, ...]
    loads: tuple[BenchLoad, ...]
    contents: tuple[str, ...]
    shares_prefix: bool = False
    turns: int = 1

    def cells(self) -> list[BenchCell]:
        """Returns the cells: content by content, and in llama-benchy's order: depth, prompt, new tokens, load."""
        return [
            BenchCell(prompt, new, depth, load, content, self.shares_prefix, self.turns)
            for content, depth, prompt, new, load in product(self.contents, self.depths, self.prompts, self.new, self.loads)
        ]


def loads_of(
    concurrency: Sequence[int], rates: Sequence[float], arrivals: Arrivals, burstiness: float | None
) -> tuple[BenchLoad, ...]:
    """Returns the loads: closed ones, or one for each rate; raises WrongUse where both were asked for."""
    if rates and concurrency:
        raise WrongUse(
            "--rate and --concurrency exclude each other",
            why="requests either come by the clock, or when others are done",
            next_step="name one of them",
        )
    if any(rate <= 0 for rate in rates) or (burstiness is not None and burstiness <= 0):
        raise WrongUse("--rate and --burstiness are above 0")
    if rates:
        return tuple(BenchLoad(arrivals, None, rate, burstiness if arrivals == "gamma" else None) for rate in rates)
    return tuple(BenchLoad("closed", count) for count in concurrency or (1,))


def traced(file: Path, grid: Grid, settings: Settings) -> tuple[Grid, Settings]:
    """Returns a trace as one cell, named after its middle lengths. Raises WrongUse."""
    lines = tuple(read_trace(file))
    prompt, new = (int(median_of([getattr(line, name) for line in lines])) for name in ("prompt_tokens", "new_tokens"))
    changed = grid._replace(prompts=(prompt,), new=(new,), depths=(0,), loads=(BenchLoad("trace"),), turns=1)
    return changed, settings._replace(trace=lines)


def read_tokenizer(file: Path | None) -> Callable[[str], int] | None:
    """Returns what counts by a tokenizer.json; raises WrongUse where it, or what reads it, is not there."""
    if file is None:
        return None
    place = file / "tokenizer.json" if file.is_dir() else file
    try:
        import tokenizers  # no part of Stoker: a server that neither counts nor has /tokenize is rare

        found: Any = tokenizers.Tokenizer.from_file(str(place))
    except ImportError as problem:
        raise WrongUse(
            "--tokenizer needs the package `tokenizers`", next_step="pip install tokenizers, or leave --tokenizer out"
        ) from problem
    except Exception as problem:
        raise WrongUse(f"{place} is no tokenizer", why=str(problem)) from problem
    return lambda text: len(found.encode(text, add_special_tokens=False).ids)
