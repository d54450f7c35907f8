"""One model over two boxes with a bad wire between them: what comes late or twice ends nothing."""

from __future__ import annotations

import time
from pathlib import Path

from fake_engine import Script
from fake_rank import SERVICE, write_rank
from home import wait_for
from lossy_wire import BACK, OUT
from net_boxes import IN_NAMESPACES, OVER_WIRES, Network
from stoker.flows.ranks.desk import LOOK_S
from stoker.records import ServiceView, State
from stoker.supervise.runtimes.ranked import LEASE_S, RENEW_S

MODEL = Path(__file__).parents[2] / "models" / "demo" / "hf"
DELAY_S, JITTER_S, LOSS = 0.02, 0.01, 0.05
RENEWALS = int(LEASE_S / RENEW_S)

pytestmark = [IN_NAMESPACES, OVER_WIRES]


def test_ranks_outlive_their_lease_over_delay_and_loss_and_a_deafness_that_is_shorter_than_what_is_given_up(
    network: Network,
) -> None:
    a, (b, wire) = network.add("a"), network.add_far("b")
    for box in (a, b):
        box.configure(SERVICE.format(model=MODEL, program=write_rank(box.folder / "rank", Script()), more=""))

    def views() -> list[ServiceView]:
        found = []
        for box in (a, b):
            with box.inside():
                found.append(box.service("duo"))
        return found

    a.join(b, "--act")
    wire.be(DELAY_S, JITTER_S, LOSS)
    a.run("up", "duo")
    wait_for("the rank to be READY", lambda: {one.state for one in views()} == {State.READY}, 10.0)
    begun, engines = time.monotonic(), {*a.engines(), *b.engines()}
    wire.be(loss=1.0)
    asked = wire.counts[OUT].opened
    wait_for("box b to be asked in vain", lambda: wire.counts[OUT].opened >= asked + 3, 15.0)
    assert a.sees("b", is_here=False)
    wire.be(DELAY_S, JITTER_S, LOSS)
    answered = wire.counts[BACK].opened

    def has_lasted() -> bool:
        """Tells whether a rank that was not heard would have ended by now."""
        return wire.counts[BACK].opened - answered >= RENEWALS - 1 and time.monotonic() - begun > LEASE_S + 2 * LOOK_S

    wait_for("renewals to go on for longer than a lease", has_lasted, 60.0)
    assert len(engines) == 2 and {*a.engines(), *b.engines()} == engines
    assert [(one.state, one.restarts) for one in views()] == [(State.READY, 0)] * 2
    assert a.chat("duo").status_code == 200
    wire.be()
    a.run("down", "duo")
    assert (a.engines(), b.engines()) == ({}, {})
