"""Shows what each gateway does when things go wrong, as a table; prints Markdown.

    python -m benchmarks.gateway.behaviour --peers direct stoker nginx      some 70 s a gateway

Each probe gets a fresh gateway in front of a mock engine of its own. Milliseconds here are no measure of speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.gateway import probes, probes_input
from benchmarks.gateway.choice import choose
from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import describe_machine, describe_versions
from benchmarks.gateway.peers import Cores, Peer, read_entries
from benchmarks.gateway.probes import Seen
from benchmarks.gateway.processes import end_cleanly_on_sigterm
from benchmarks.gateway.table import UNKNOWN, markdown

PROBES = {probe.__name__.removeprefix("probe_"): probe for probe in (*probes.PROBES, *probes_input.PROBES)}


def watch(start: Callable[[], Peer], name: str) -> Seen:
    """Runs one probe on a fresh gateway; a probe that breaks is a finding too."""
    try:
        peer = start()
    except (OSError, RuntimeError, subprocess.SubprocessError) as problem:
        return {f"({name})": f"no start: {type(problem).__name__}"}
    try:
        return PROBES[name](peer)
    except (OSError, RuntimeError, LookupError) as problem:
        return {f"({name})": f"failed: {type(problem).__name__}: {problem}"}
    finally:
        peer.stop()


def render(seen: dict[str, Seen]) -> str:
    """Returns a table with a row for each observation and a column for each gateway."""
    rows = list(dict.fromkeys(name for found in seen.values() for name in found))
    return markdown(["", *seen], [[name, *(found.get(name, UNKNOWN) for found in seen.values())] for name in rows])


def main() -> int:
    """Probes and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", help="direct, stoker, or a name of peers.toml; else all that are on PATH")
    parser.add_argument("--probes", nargs="+", choices=list(PROBES), default=list(PROBES))
    parser.add_argument("--write", type=Path, help="write the table into this document, too")
    options = parser.parse_args()
    end_cleanly_on_sigterm()
    entries, seen = read_entries(), dict[str, Seen]()
    for peer, start in choose(options.peers, entries, Cores()).items():
        seen[peer] = {}
        for name in options.probes:
            found = watch(start, name)
            print(peer, name, found, file=sys.stderr, flush=True)
            seen[peer] |= found
    versions = describe_versions({name: entry for name, entry in entries.items() if name in seen})
    text = f"{describe_machine()}.\n\n{versions}.\n\n{render(seen)}\n"
    print(text)
    if options.write:
        write_part(options.write, "behaviour", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
