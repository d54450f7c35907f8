"""A state folder with the history of many services: real rows of the demo's, kept again under other names."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from home import Home  # noqa: E402
from stoker.records import State  # noqa: E402
from stoker.records.watching import WatchPoint  # noqa: E402
from stoker.store.services import ServiceStore, read_saved  # noqa: E402
from stoker.store.timelines import TimelineStore, read_starts  # noqa: E402
from stoker.store.verifications import VerificationStore, read_verifications  # noqa: E402
from stoker.store.watch import Batch, write_batch  # noqa: E402

DEMO = "demo"
MINUTE_S, POINTS = 60, 120
POINT = WatchPoint(60.0, 600, 60, 300, 200, 100, 2, 1, 9, 0)


def write_history(home: Home, count: int) -> None:
    """Adds so many services that rest, each with starts, verifications and two hours of points.

    The demo has to have been READY once, and no daemon may run.
    """
    file = home.paths.database
    saved = next(one for one in read_saved(file) if one.plan.service == DEMO)
    starts, verified = read_starts(file, DEMO), read_verifications(file, DEMO)
    rests = msgspec.structs.replace(saved.service, state=State.STOPPED, wanted=False, why="it was stopped")
    names = [f"service-{number:03}" for number in range(count)]
    services, timelines, verifications = ServiceStore(file), TimelineStore(file), VerificationStore(file)
    with closing(services), closing(timelines), closing(verifications):
        for name in names:
            plan = msgspec.structs.replace(saved.plan, service=name, model=name)
            services.write(msgspec.structs.replace(saved, plan=plan, service=rests, handle=None, good=(plan,)))
            for start in starts:
                timelines.write(msgspec.structs.replace(start, service=name))
            for kept in verified:
                verifications.write(msgspec.structs.replace(kept, service=name))
    now = int(time.time()) // MINUTE_S * MINUTE_S
    minutes = range(now - POINTS * MINUTE_S, now, MINUTE_S)
    write_batch(home.paths.watch_database, Batch({(name, at): POINT for name in names for at in minutes}))
