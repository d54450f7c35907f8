"""Threads that decode a type for the first time at once: what msgspec cannot do is done before there are any."""

from __future__ import annotations

import subprocess
import sys

# A switch at nearly every step makes the fault common; without `prepare_records` a quarter of such processes crashed.
PROGRAM = """
import sys, threading
import msgspec
from stoker.records.first_use import prepare_records

class Inner(msgspec.Struct, frozen=True):
    number: int = 0
    names: tuple[str, ...] = ()

class Middle(msgspec.Struct, frozen=True):
    inner: Inner = Inner()
    by_name: dict[str, Inner] = {}

class Outer(msgspec.Struct):
    middle: Middle
    more: list[Middle] = []

assert prepare_records() >= 3
sys.setswitchinterval(1e-7)
together = threading.Barrier(8)

def decode():
    together.wait()
    for _ in range(3):
        msgspec.convert({"middle": {"inner": {"number": 1}}}, Outer)
        msgspec.json.schema(Outer)

threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
TRIES = 8


def test_threads_that_meet_known_types_at_once_do_not_crash() -> None:
    ends = [subprocess.run((sys.executable, "-c", PROGRAM), timeout=60, check=False).returncode for _ in range(TRIES)]
    assert ends == [0] * TRIES


def test_what_the_daemon_decodes_can_be_known() -> None:
    said = "import stoker.flows.serve\nfrom stoker.records.first_use import prepare_records\nprint(prepare_records())"
    done = subprocess.run((sys.executable, "-c", said), capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 100
