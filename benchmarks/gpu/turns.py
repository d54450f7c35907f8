"""Says what all kept turns on GPUs together tell of the gateway: its share of an engine's rate, and how sure that is.

    python -m benchmarks.gpu.turns --keep build/gpu --machine "two H200"     adds a run's pairs to the kept ones
    python -m benchmarks.gpu.turns --given 0.006 --write docs/measured/gpu.md

`--given` is the share that the test gives the gateway (`benchmarks/connections.py`), which is taken off again. The last
column is how often luck alone would show as much if 2 % of the rate were lost.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.gateway.document import write_part
from benchmarks.gateway.table import markdown
from benchmarks.gpu.door import SIDES
from benchmarks.gpu.notes import pick, read_notes
from benchmarks.shares import say_share
from stoker.tune.ratios import LEVEL, interval

ROWS = Path(__file__).parents[2] / "docs" / "measured" / "gpu-turns.csv"
LOST = 0.02
HEADS = ("engine", "pairs", "rate, of that past it", "server's processor time a token, of that past it")


class Pair(NamedTuple):
    """A turn through the gateway and the one past it that followed."""

    machine: str
    engine: str
    through_tok_s: float
    past_tok_s: float
    through_server_us: float
    past_server_us: float


def pairs_of(file: Path, machine: str) -> list[Pair]:
    """Returns the pairs of a run's notes; where it was cut off a side's last block has none to go with."""
    turns = pick(read_notes(file), "door")
    found: list[Pair] = []
    for engine in sorted({note["engine"] for note in turns}):
        sides = [[note["figures"] for note in turns if (note["engine"], note["side"]) == (engine, side)] for side in SIDES]
        for through, past in zip(*sides, strict=False):
            values = [side[name] for name in ("total_e2e_tps", "server_us_token") for side in (through, past)]
            found += (Pair(machine, engine, *(round(one, 1) for one in row)) for row in zip(*values, strict=True))
    return found


def read_rows() -> list[Pair]:
    """Returns the kept pairs."""
    with ROWS.open(newline="") as file:
        return [Pair(row[0], row[1], *map(float, row[2:])) for row in list(csv.reader(file))[1:]]


def keep_rows(pairs: Sequence[Pair]) -> None:
    """Writes the kept pairs."""
    with ROWS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([Pair._fields, *pairs])


def row_of(name: str, pairs: Sequence[Pair], given: float) -> list[str]:
    """Returns a line of the table."""
    rates = [math.log(one.through_tok_s / one.past_tok_s) for one in pairs]
    times = [math.log(one.through_server_us / one.past_server_us) for one in pairs]
    fair = [one + math.log(1 - given) for one in rates]
    middle, half = interval(fair, LEVEL)
    error = statistics.stdev(fair) / math.sqrt(len(fair))  # of so many pairs Student's t is the normal one
    luck = statistics.NormalDist().cdf((math.log(1 - LOST) - middle) / error)
    low = f"{100 * math.exp(middle - (half or math.inf)):.1f} %"
    return [name, str(len(pairs)), say_share(rates), say_share(times), low, f"one time in {1 / luck:.0f}"]


def render(pairs: Sequence[Pair], given: float) -> str:
    """Returns the table of each engine, and of all."""
    engines = sorted({one.engine for one in pairs})
    rows = [row_of(engine, [one for one in pairs if one.engine == engine], given) for engine in engines]
    machines = ", ".join(sorted({one.machine for one in pairs}))
    heads = (*HEADS, f"the rate's lower end, less {100 * given:.1f} %", f"by luck alone, were {100 * LOST:.0f} % lost")
    return f"{machines}.\n\n{markdown(heads, [*rows, row_of('all', pairs, given)])}\n"


def main() -> None:
    """Keeps a run's pairs, or says what all tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="a run's folder")
    parser.add_argument("--machine", default="this machine")
    parser.add_argument("--given", type=float, default=0.0)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if options.keep:
        keep_rows([*read_rows(), *pairs_of(options.keep / "results.jsonl", options.machine)])
    text = render(read_rows(), options.given)
    print(text)
    if options.write:
        write_part(options.write, "gpu-turns-together", text)


if __name__ == "__main__":
    main()
