"""Tunes, and sweeps everything beside it: how near the choice is to the sweep's best, and how many starts were spared.

    python benchmarks/tuning.py [--seeds 5] [--measure 15] [--vllm PYTHON] [--write docs/measured/tuning.md]

The demo model with its draft model in llama.cpp (embedded), on code and on prose; with --vllm, in vLLM too. For each seed a
tuning without memory of former ones, and then each way that there is, measured in the same manner with the same prompts. The
best of ten figures is too high by chance, so the choice and the sweep's best are then started and measured again in turns;
the choice is judged by these figures alone, never by what the tuning or the sweep saw. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stoker import __version__
from stoker.config import demo_model, find_paths, read_config
from stoker.flows.down import stop_all, stop_daemon
from stoker.flows.tunable import read_tunable
from stoker.flows.tune import tune
from stoker.flows.tune_trying import Asking, Talk, Trier
from stoker.flows.up import ensure_daemon
from stoker.records import Sighting, Way
from stoker.tune.ratios import rate_of

MODELS = Path(__file__).parents[1] / "models" / "demo"
NEAR = 0.03
TURNS = 3  # of the choice and of the sweep's best, each with a start of its own
LLAMACPP = f'model = "{demo_model()}"\nreasoning = "off"\nspeculation = "draft"\ndraft = "{demo_model(draft=True)}"\n'
VLLM = """model = "{folder}/hf"
engine = "vllm"
program = ["{python}", "-m", "vllm.entrypoints.openai.api_server"]
context = 1024
parallel = 4
speculation = "draft"
draft = "{folder}/hf-draft"
draft_tokens = 3
flags = {{ enforce-eager = true }}
environment = {{ VLLM_NO_USAGE_STATS = "1", HF_HUB_OFFLINE = "1" }}
"""


class Row(NamedTuple):
    """One tuning beside its sweep; rates are medians of the turns after it, the sweep's where the choice was its best."""

    engine: str
    content: str
    seed: int
    chosen: str
    chosen_tok_s: float
    best: str
    best_tok_s: float
    starts: int
    sweep_starts: int
    took_s: float
    sweep_s: float

    @property
    def behind(self) -> float:
        """How far the choice is behind the best, as a share."""
        return 1 - self.chosen_tok_s / self.best_tok_s

    @property
    def is_good(self) -> bool:
        """Whether it is within 3 %, with at most half of the starts."""
        return self.behind <= NEAR and 2 * self.starts <= self.sweep_starts


def compare(engine: str, table: str, asking: Asking) -> Row:
    """Tunes a service and sweeps it; the service rests before and after both."""
    paths = find_paths()
    paths.config.write_text(f"[gateway]\nport = 0\n[service.coder]\n{table}")
    config = read_config(paths.config)
    tunable = read_tunable("coder", config)
    talk = Talk(print, print)
    view = tune(paths, config, "coder", asking, talk)
    if view.chosen is None:
        raise SystemExit(f"{engine}: {view.why}")
    daemon = ensure_daemon(paths)
    trier, began_s = Trier(paths, config, daemon, tunable, asking, talk), time.monotonic()
    found: dict[Way, Sighting | str] = {way: trier.try_way(way) for family in tunable.families for way in family.ways}
    sweep_s, sweep_starts = time.monotonic() - began_s, trier.starts
    rates = {way: rate_of(one) for way, one in found.items() if isinstance(one, Sighting)}
    best = max(rates, key=rates.__getitem__)
    again = rates if best == view.chosen else measure_in_turns(trier, (view.chosen, best), TURNS)
    for _ in stop_all(paths, daemon):
        pass
    return Row(engine, asking.contents[0], asking.seed, view.chosen.name, again[view.chosen], best.name, again[best],
               view.starts + 1, sweep_starts, view.took_s or 0.0, sweep_s)  # fmt: skip


def measure_in_turns(trier: Trier, ways: tuple[Way, ...], turns: int) -> dict[Way, float]:
    """Returns the median of what each way gave; all are started in each turn, one after another."""
    seen: dict[Way, list[float]] = {way: [] for way in ways}
    for _ in range(turns):
        for way in ways:
            one = trier.try_way(way)
            if isinstance(one, Sighting):
                seen[way].append(rate_of(one))
    return {way: statistics.median(rates) for way, rates in seen.items()}


def rows_of(options: argparse.Namespace, engines: dict[str, str]) -> Iterator[Row]:
    """Yields a row for each engine, content and seed."""
    for engine, table in engines.items():
        for content in ("code", "prose"):
            for seed in range(1, options.seeds + 1):
                asking = Asking(contents=(content,), seed=seed, measure_s=options.measure, prompt_tokens=128,
                                new_tokens=256, budget_s=3600.0, fresh=True)  # fmt: skip
                yield compare(engine, table, asking)


HEAD = """# Tuning beside a sweep

<!-- Written by benchmarks/tuning.py. -->

{day}, Stoker {version}, {machine}, {cores} cores without a GPU: the demo model with its draft, each way for {measure:g} s or
to 3 %. `python benchmarks/tuning.py`

Within 3 % of the sweep's best with at most half of its starts: **{good} of {count}**.

| engine | content | seed | chosen | tok/s | best of the sweep | tok/s | behind | starts | of | took | sweep |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
FOOT = """
Rates are the sweep's where the choice was its best. Else both were started {turns} times more, in turns, and these are the
medians: the best of many figures is too high by chance, and only new ones tell by how much. Starts: all of the tuning,
and one more for the choice to run.
"""


def render(rows: list[Row], options: argparse.Namespace) -> str:
    """Returns the page."""
    head = HEAD.format(
        day=time.strftime("%Y-%m-%d"), version=__version__, machine=platform.machine(), cores=os.cpu_count(),
        measure=options.measure, good=sum(row.is_good for row in rows), count=len(rows),
    )  # fmt: skip
    return head + "".join(map(line_of, rows)) + FOOT.format(turns=TURNS)


def line_of(row: Row) -> str:
    """Returns a row of the table."""
    chosen, best = f"{row.chosen} | {row.chosen_tok_s:.1f}", f"{row.best} | {row.best_tok_s:.1f}"
    cost = f"{row.starts} | {row.sweep_starts} | {row.took_s:.0f} s | {row.sweep_s:.0f} s"
    return f"| {row.engine} | {row.content} | {row.seed} | {chosen} | {best} | {row.behind:.1%} | {cost} |\n"


def main() -> None:
    """Compares, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--measure", type=float, default=15.0)
    parser.add_argument("--vllm", metavar="PYTHON")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    engines = {"llama.cpp": LLAMACPP}
    if options.vllm:
        engines["vLLM"] = VLLM.format(folder=MODELS, python=options.vllm)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"STOKER_STATE": f"{folder}/state", "STOKER_CONFIG": f"{folder}/stoker.toml"}
        rows = []
        try:
            for row in rows_of(options, engines):
                rows.append(row)
                print(row, f"behind {row.behind:.1%}", flush=True)
        finally:
            stop_daemon(find_paths(), ensure_daemon(find_paths()))
    page = render(rows, options)
    print(page)
    if options.write:
        options.write.write_text(page)


if __name__ == "__main__":
    main()
