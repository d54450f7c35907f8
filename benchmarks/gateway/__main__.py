"""Measures Stoker's gateway beside its peers and the engine alone; prints Markdown for `docs/measured/gateway.md`.

    python -m benchmarks.gateway --repeats 3 --write docs/measured/gateway.md     some 5 minutes a repeat
    python -m benchmarks.gateway --quick                                          what a developer runs; 2 minutes

Each peer has the mock engine of its own behind it. The gateway has a core for itself; engine and client share another where
there are only two, else each has one of its own.
Peers take turns in each repeat, and each turn starts everything afresh. A cell during which other programs used much of the
processors is measured again. Peers that are not on PATH are left out; `tools/make-peers` makes those that are on PyPI.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.gateway.cells import CELLS, Patience, Turn, take_turn
from benchmarks.gateway.choice import choose
from benchmarks.gateway.cores import choose_cores, describe_cores, read_cores
from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import Stolen, describe_machine, describe_versions
from benchmarks.gateway.peers import Cores, Peer, read_entries
from benchmarks.gateway.processes import end_cleanly_on_sigterm
from benchmarks.gateway.table import render

QUICK_CELLS = ["256", "1000", "short"]
QUICK_PEERS = ["direct", "nginx", "stoker"]
NOTES = """\
Times in microseconds: the engine's own in the row *direct*, in the others what the gateway adds to them (its quantile less
direct's of the same cell). Numbers are medians, with the lowest and highest over the repeats that counted: those in which
other programs used at most {foreign:g} cores, or all where none was left in peace. *Stretch* is the time taken over the time
that it takes where nothing is late: 1.00 means that the gateway kept up. Stoker is asked with its key, and checks it; the
others ask for none."""


def read_options() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"one repeat of {QUICK_CELLS} for {QUICK_PEERS}")
    parser.add_argument("--peers", nargs="+", help="direct, stoker, or a name of peers.toml; else all that are on PATH")
    parser.add_argument("--cells", nargs="+", choices=list(CELLS), help="else all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, nargs=3, metavar=("ENGINE", "GATEWAY", "CLIENT"), help="else chosen")
    parser.add_argument("--foreign", type=float, default=0.15, help="cores that others may use in a cell that counts")
    parser.add_argument("--tries", type=int, default=3, help="how often a disturbed cell is measured at most")
    parser.add_argument("--quiet-s", type=float, default=10.0, help="how long to wait for a quiet machine before a cell")
    parser.add_argument("--cell-s", type=float, default=60.0, help="limit of one cell")
    parser.add_argument("--json", type=Path, help="write every turn here")
    parser.add_argument("--write", type=Path, help="write the tables into this document, too")
    parser.add_argument("--part", default="speed", help="the document's part, one for each machine")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.tries, options.quiet_s = 1, 1, 0.0
        options.peers, options.cells = options.peers or QUICK_PEERS, options.cells or QUICK_CELLS
    return options


def measure(options: argparse.Namespace, peers: dict[str, Callable[[], Peer]], cores: Cores) -> list[Turn]:
    """Lets all peers take their turns."""
    patience = Patience(options.foreign, options.tries, options.quiet_s, options.cell_s)
    turns: list[Turn] = []
    for repeat in range(options.repeats):
        print(f"repeat {repeat + 1} of {options.repeats}", file=sys.stderr, flush=True)
        for name, start in peers.items():
            turns.append(take_turn(name, start, options.cells or list(CELLS), cores, patience))
            if turns[-1].failed:
                print(f"  {name} failed: {turns[-1].failed}", file=sys.stderr, flush=True)
            if options.json:
                options.json.write_bytes(msgspec.json.encode(turns))
    return turns


def main() -> int:
    """Measures, prints and writes."""
    options = read_options()
    end_cleanly_on_sigterm()
    cores = choose_cores(options.cores, read_cores())
    entries, machine, stolen = read_entries(), describe_machine(), Stolen()
    peers = choose(options.peers, entries, cores)
    turns = measure(options, peers, cores)
    versions = describe_versions({name: entry for name, entry in entries.items() if name in peers})
    notes = NOTES.format(foreign=options.foreign)
    tables = render(turns, options.cells or list(CELLS), options.foreign)
    text = f"{machine}; {describe_cores(cores)}; {stolen.describe()}.\n\n{versions}.\n\n{notes}\n\n{tables}\n"
    print(text)
    if options.write:
        write_part(options.write, options.part, text)
    return 1 if any(turn.failed for turn in turns) else 0


if __name__ == "__main__":
    sys.exit(main())
