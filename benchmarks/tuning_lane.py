"""Tunes one service for one content and seed after another, and sweeps all ways beside each; prints a line of JSON for each.

    python -m benchmarks.tuning_lane llama.cpp code:1 prose:1 [--measure 15] [--rounds 24] [--cores 2,3] [--vllm PYTHON]

All in a state folder of its own and, with --cores, on cores of its own, which the engines inherit: so that several lanes may
run at once. What is swept stays up and rests while the service is tuned. `benchmarks/tuning.py` runs lanes and makes a page.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from benchmarks.gateway.processes import end_cleanly_on_sigterm
from benchmarks.tuning_fleet import Fleet, Sweep, mean
from benchmarks.tuning_page import Figure, Row
from stoker import __version__
from stoker.config import demo_model, find_paths, read_config
from stoker.flows.down import stop_all, stop_daemon
from stoker.flows.tunable import read_tunable
from stoker.flows.tune import tune
from stoker.flows.tune_asking import Asking, Talk
from stoker.flows.up import ensure_daemon
from stoker.records import TuneView, Way

MODELS = Path(__file__).parents[1] / "models" / "demo"
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


def compare(options: argparse.Namespace, talk: Callable[[Asking], Talk]) -> Iterator[Row]:
    """Returns the row of each content and seed; the service rests before and after."""
    only = ("draft",) if options.engine == "vLLM" else ()
    table = VLLM.format(folder=MODELS, python=options.vllm) if options.engine == "vLLM" else LLAMACPP
    paths = find_paths()
    written = f"[gateway]\nport = 0\n[service.coder]\n{table}"
    paths.config.write_text(written)
    daemon = ensure_daemon(paths)
    fleet = None
    for content, seed in options.cases:
        asking = Asking(contents=(content,), seed=seed, measure_s=options.measure, prompt_tokens=128, new_tokens=256,
                        budget_s=3600.0, fresh=True, only=only)  # fmt: skip
        paths.config.write_text(written)  # a tuning before this one wrote its choice there
        view = tune(paths, read_config(paths.config), "coder", asking, talk(asking))
        if view.chosen is None:
            raise SystemExit(f"{options.engine} {content} {seed}: nothing was chosen: {view.why}")
        fleet = fleet or Fleet(daemon, read_tunable("coder", read_config(paths.config), only=only))
        yield make_row(options, asking, view, view.chosen, fleet.sweep(asking, view.chosen, options.rounds))
    for _ in stop_all(paths, daemon):
        pass


def make_row(options: argparse.Namespace, asking: Asking, view: TuneView, chosen: Way, swept: Sweep) -> Row:
    """Returns it all as a record, with the machine it was measured on."""
    figures = tuple(
        Figure(
            one.way.name,
            one.measured.tok_s if one.measured else None,
            one.predicted,
            mean(swept.rates[one.way]) if one.way in swept.rates else None,
            one.accept_length,
        )
        for one in view.ways
    )
    return Row(
        options.engine, asking.contents[0], asking.seed, chosen.name, swept.best.name, swept.turns(chosen),
        starts=view.starts + 1, sweep_starts=len(view.ways), took_s=view.took_s or 0.0, sweep_s=swept.took_s, why=view.why,
        figures=figures, machine=f"{platform.machine()}, {len(os.sched_getaffinity(0))} of {os.cpu_count()} cores",
        day=time.strftime("%Y-%m-%d"), version=__version__, measure_s=options.measure, counts_starts=True,
    )  # fmt: skip


def read_case(text: str) -> tuple[str, int]:
    """Reads `code:1`."""
    content, _, seed = text.partition(":")
    if content not in ("code", "prose"):
        raise argparse.ArgumentTypeError(f"no content: {content}")
    return content, int(seed)


def main() -> None:
    """Compares, and prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=("llama.cpp", "vLLM"))
    parser.add_argument("cases", nargs="+", type=read_case, metavar="CONTENT:SEED")
    parser.add_argument("--measure", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--cores", type=lambda text: {int(one) for one in text.split(",")})
    parser.add_argument("--vllm", metavar="PYTHON")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    if options.cores:
        os.sched_setaffinity(0, options.cores)

    def talk(asking: Asking) -> Talk:
        label = f"{options.engine} {asking.contents[0]} {asking.seed}"
        return Talk(lambda text: print(f"{label}: {text}", file=sys.stderr, flush=True), lambda _: None)

    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"STOKER_STATE": f"{folder}/state", "STOKER_CONFIG": f"{folder}/stoker.toml"}
        try:
            for row in compare(options, talk):
                print(msgspec.json.encode(row).decode(), flush=True)
        finally:
            stop_daemon(find_paths(), ensure_daemon(find_paths()))


if __name__ == "__main__":
    main()
