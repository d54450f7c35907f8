"""Boxes whose clocks are far apart: links, leases and durations hang on no agreement of clocks on walls."""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.flows.boxes.clocks import as_here
from stoker.flows.boxes.linked import find_linked
from stoker.records.watching import Alert, WatchedService, WatchView

# Debian's package faketime: it gives a program clocks of its own.
FAKETIME = next(map(str, Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), "")
HAS_FAKETIME = pytest.mark.elsewhere(bool(FAKETIME), "libfaketime")
DAY_S = 86400.0
FAR_S, SEEN_S = 3600.0, 5.0


def set_clock(box: Box, days: int) -> None:
    """Puts the clock of all that this box runs from now on so far ahead, or back."""
    box.environment |= {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{days:+d}d"}


def test_times_that_another_box_told_are_moved_and_durations_and_unknown_ones_are_not() -> None:
    alert = Alert("box-away", "b", "warning", "t", "w", "f", "firing", 1000.0, 1120.0)
    service = WatchedService("coder", "READY", 1, 0, 20.0, None, None, (0.2, 0.4))
    view = WatchView(1200.0, 15.0, (service,), 1, 2, None, None, (alert,))
    here = as_here(view, 50.0)
    assert (here.at, here.every_s, here.services) == (1250.0, 15.0, (service,))
    (told,) = here.alerts
    assert (told.since, told.fired, told.resolved) == (1050.0, 1170.0, None)


@IN_NAMESPACES
@HAS_FAKETIME
def test_boxes_years_apart_join_answer_go_and_come_and_tell_durations_that_are_true(network: Network) -> None:
    begun = time.time()
    a, b, c = map(network.add, "abc")
    for box, days in ((b, 400), (c, -900)):
        set_clock(box, days)
        box.run("up")
        own = box.json("status")["services"][0]["since"]
        assert abs(own - begun - days * DAY_S) < FAR_S  # its clock is really another
        a.join(box, "--act")
        wait_for("it to serve", partial(a.serves, box))
    for box in (b, c):
        assert a.chat(headers={"x-stoker-box": box.name}).headers["x-stoker-box"] == box.name
        with a.inside():
            told = find_linked(a.paths, box.name).status()
        times = (told.services[0].since, told.daemon.since or 0.0)
        assert all(begun - 1 < one < time.time() + 1 for one in times), (begun, times)
    b.join(c)  # two wrong clocks
    network.cable(c, "down")
    wait_for("c to be away for both", lambda: a.sees("c", False) and b.sees("c", False), SEEN_S)
    network.cable(c, "up")
    wait_for("c to be back for both", lambda: a.serves(c) and b.serves(c), SEEN_S)
    assert b.chat(headers={"x-stoker-box": "c"}).status_code == 200
    assert all(begun - 1 < one.since <= time.time() for one in a.boxes().boxes)
    assert re.search(r"box c  here for [0-9]+ s;", b.run("status").stdout)
