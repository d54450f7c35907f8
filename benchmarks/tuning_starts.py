"""Starts two ways in turn, as tuning does, and says how far their ratio goes between turns: as measured, and less luck.

    python -m benchmarks.tuning_starts [--content prose] [--seed 4] [--turns 4] [--measure 30] [--core 0] [--beside]

The ways are off and a lookup of llama.cpp's, of the demo model. Says too what looking adds to a step (`Engine.lookup_s`).
With --beside the service stays up with its draft, and both are tried beside it.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager

from benchmarks.gateway.processes import end_cleanly_on_sigterm
from benchmarks.tuning_lane import LLAMACPP
from stoker.config import Config, Paths, find_paths, read_config
from stoker.engines import find
from stoker.flows.down import stop_all, stop_daemon
from stoker.flows.tunable import Tunable, read_tunable
from stoker.flows.tune_asking import Asking, Talk
from stoker.flows.tune_trying import Trier
from stoker.flows.up import ensure_daemon
from stoker.records import Sighting, Way
from stoker.tune.families import OFF
from stoker.tune.luck import luck_of
from stoker.tune.ratios import compare

LOOKUP = Way("ngram", 8, lookup_min=6)
SILENT = Talk(lambda _: None, lambda _: None)


@contextmanager
def configured() -> Iterator[tuple[Paths, Config]]:
    """Has a configuration of its own, with the demo model, and stops what runs by it in the end."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"STOKER_STATE": f"{folder}/state", "STOKER_CONFIG": f"{folder}/stoker.toml"}
        paths = find_paths()
        paths.config.write_text(f"[gateway]\nport = 0\n[service.coder]\n{LLAMACPP}")
        try:
            yield paths, read_config(paths.config)
        finally:
            for _ in stop_all(paths, ensure_daemon(paths)):
                pass
            stop_daemon(paths, ensure_daemon(paths))


def start_in_turn(paths: Paths, config: Config, tunable: Tunable, asking: Asking, turns: int) -> Iterator[list[Sighting]]:
    """Returns what off and the lookup gave in each turn; both are started anew, beside the service where that is asked."""
    for _ in range(turns):
        trier = Trier(paths, config, ensure_daemon(paths), tunable, asking, SILENT)
        with closing(trier):
            seen = [trier.try_way(way) for way in ((tunable.present,) if asking.beside else ()) + (OFF, LOOKUP)]
        if failed := [one for one in seen if isinstance(one, str)]:
            raise SystemExit(f"a way gave nothing: {failed[0]}")
        yield [one for one in seen if isinstance(one, Sighting)][-2:]


def added(off: Sighting, lookup: Sighting, known_s: float) -> list[float]:
    """Returns by how many seconds a lookup's steps without drafts were longer than off's, drift of the machine among it."""
    off_s, lookup_s = (one.seen[0].base_step_s for one in (off, lookup))
    return [] if off_s is None or lookup_s is None else [lookup_s + known_s - off_s]


def main() -> None:
    """Says the ratio of each turn, and how far it goes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--content", default="prose", choices=("code", "prose"))
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--measure", type=float, default=30.0)
    parser.add_argument("--core", type=int)
    parser.add_argument("--beside", action="store_true")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    asking = Asking(contents=(options.content,), seed=options.seed, measure_s=options.measure, prompt_tokens=128, fresh=True,
                    beside=options.beside)  # fmt: skip
    measured, fair, added_s = [], [], []
    with configured() as (paths, config):
        tunable = read_tunable("coder", config)
        for off, lookup in start_in_turn(paths, config, tunable, asking, options.turns):
            measured.append(math.log(compare(lookup, off).ratio))
            fair.append(measured[-1] - luck_of(tunable.families, [off, lookup]).get(LOOKUP, 0.0))
            added_s += added(off, lookup, find(tunable.plan.engine).lookup_s or 0.0)
            print(f"{LOOKUP.name} by off: {math.exp(measured[-1]):.3f}, less luck {math.exp(fair[-1]):.3f}", flush=True)
    for label, logs in (("as measured", measured), ("less luck", fair)):
        print(f"{label}: {math.exp(statistics.fmean(logs)):.3f}, a turn is off by {statistics.stdev(logs):.1%}")
    if added_s:
        each_us = sorted(round(one * 1e6) for one in added_s)
        print(f"looking adds {statistics.median(each_us):.0f} µs to a step, {each_us}")


if __name__ == "__main__":
    main()
