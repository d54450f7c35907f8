"""Kills the daemon or its engine with -9 at random moments: no orphan, no second engine, no lost state, a true status.

`STOKER_FAULTS` says how many; the seed is printed, and `STOKER_FAULT_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

from home import Home, wait_for
from stoker.records import State

COUNT = int(os.environ.get("STOKER_FAULTS", "25"))
LONGEST_S = 1.5  # a whole `up`, its gate included, or `down` takes less
WITH_ENGINE = {"STARTING", "LOADING", "PROVING", "READY", "DRAINING", "STOPPING"}


def begin(home: Home, verb: str) -> subprocess.Popen[bytes]:
    """Begins a verb whose end is not waited for."""
    argv = [sys.executable, "-m", "stoker", verb, "demo"]
    return subprocess.Popen(argv, env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_one(home: Home, victim: str) -> str | None:
    """Kills the daemon, or one of its engines, if there is one; returns what was killed."""
    pids = [home.daemon_pid] if victim == "daemon" else list(home.engines())
    for pid in pids:
        if pid is not None:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return None
            return victim
    return None


def check_status(home: Home) -> str:
    """Checks that the status tells the truth, and returns the state told.

    Between reading the status and looking at the processes things may move on; a mismatch must then go away by itself.
    """

    def agrees() -> str | None:
        status = home.json("status")
        engines = home.engines()
        if not status["services"]:
            return "NONE" if not engines else None
        [service] = status["services"]
        assert len(set(engines.values())) <= 1, f"two launches at once: {engines}"
        if status["daemon"]["running"]:
            if service["state"] == "READY":
                return "READY" if list(engines) == [service["pid"]] else None
            return str(service["state"]) if service["state"] in WITH_ENGINE or not engines else None
        # Without a daemon an engine may be left: then the status names it; it never claims one that is gone.
        return "UNATTENDED" if set(engines) in (set(), {service["pid"]}) or service["pid"] is None else None

    return wait_for("a status that agrees with the processes", agrees)


def test_killed_at_random_moments_nothing_is_lost(home: Home) -> None:
    seed = int(os.environ.get("STOKER_FAULT_SEED", random.randrange(10**6)))
    print(f"STOKER_FAULT_SEED={seed}")
    chance = random.Random(seed)
    seen: Counter[tuple[str, str]] = Counter()
    home.run("up")
    while seen.total() < COUNT:
        running = begin(home, chance.choice(("up", "up", "down")))
        time.sleep(chance.uniform(0, LONGEST_S))
        killed = kill_one(home, chance.choice(("daemon", "engine")))
        running.wait(60)
        if killed is None:
            continue
        seen[killed, check_status(home)] += 1
        home.run("up")
        assert home.service("demo").state is State.READY
        assert len(home.engines()) == 1
        assert home.json("ask", "Who are you?", "--max-tokens", "4")["answer"]
    print(dict(seen))
    assert {victim for victim, _ in seen} == {"daemon", "engine"}
