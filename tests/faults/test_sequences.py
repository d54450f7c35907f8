"""Random sequences of up, down, switch, rollback, adopt and kills: never two of a group alive, no orphan, no lost handle.

`STOKER_SEQUENCES` says how many. Each has a seed of its own, which is printed: `STOKER_FAULT_SEED` with one sequence repeats
it. Engines of the group hold a lock as long as they live, so that two at once are seen even if no look falls on that moment.

Drawn by `random` and not by hypothesis's state machine: that one repeats parts of what it has drawn before, so
that many sequences were near copies of another; nor can what happens in real time be shrunk.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from fake_engine import Script, write_fake_engine
from home import Home, wait_for
from stoker.config import demo_model, read_config
from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.machine.ports import pick_free_port, read_listeners
from stoker.flows.switch import follow_switch
from stoker.records import WITHOUT_ENGINE, AdoptWish, ServiceView, State, SwitchView, Wish

COUNT = int(os.environ.get("STOKER_SEQUENCES", "20"))
STEPS = 7
GROUP = ("a", "b", "c")
NAMES = (*GROUP, "beside")
HANDMADE = "handmade"
MOVES = {"up", "down", "switch", "rollback", "change", "adopt", "kill engine", "kill daemon"}
LIMITS = "switch_cooldown_s = 0.1\nstop_grace_s = 0.3\nload_s = 20\nrestarts = 2"
WAITS_SHARE, FAILS_SHARE = 0.5, 0.7
LONGEST_S = 0.3  # a whole switch takes not much more
SAYS_WAIT = {State.WAITING_FOR_MEMORY, State.LOADING, State.PROVING, State.DRAINING, State.STOPPING, State.SETTLING}


class World:
    """One Stoker for all sequences, and what was done to it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.lock = home.folder / "alone"
        self.handmade: subprocess.Popen[bytes] | None = None
        self.done: Counter[str] = Counter()
        home.configure(limits=LIMITS)
        for name in NAMES:
            home.add_fake(name, 'group = "models"' if name in GROUP else "")
        self.wishes = read_config(home.paths.config).services
        self.serve()

    def script(self, name: str, fails: bool) -> None:
        """Says what a service's next engine does."""
        script = Script(status=500 if fails else 200, alone=str(self.lock) if name in GROUP else None)
        write_fake_engine(self.home.folder / name, script)

    def start_by_hand(self) -> int:
        """Starts an engine as somebody without Stoker would; returns its pid once it listens."""
        folder = self.home.folder / HANDMADE
        program = write_fake_engine(folder, Script()).rename(folder / "llama-server")
        port = str(pick_free_port("127.0.0.1"))
        words = [sys.executable, str(program), "--model", str(demo_model()), "--alias", HANDMADE, "--port", port]
        self.handmade = process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("its port", lambda: any(one.pid == process.pid for one in read_listeners()))
        return process.pid

    def end_by_hand(self) -> None:
        """Ends that engine, if it runs."""
        if self.handmade is not None:
            self.handmade.kill()
            self.handmade.wait()

    def engines(self) -> dict[int, str]:
        """All living engines: pid and marker, which for the one started by hand is made up."""
        lives = self.handmade is not None and self.handmade.poll() is None
        return self.home.engines() | ({self.handmade.pid: f"by hand/{HANDMADE}"} if lives and self.handmade else {})

    def serve(self) -> None:
        """Starts a daemon and waits until it answers."""
        argv = [sys.executable, "-P", "-m", "stoker", "serve"]
        with self.home.paths.config.with_name("serve.log").open("ab") as log:
            self.process = subprocess.Popen(argv, env=self.home.environment, stdout=log, stderr=log)
        wait_for("the daemon", lambda: self.home.daemon_answers)

    def kill(self) -> None:
        """Kills the daemon with -9."""
        self.process.kill()
        self.process.wait()

    def clear(self) -> None:
        """Ends and forgets everything but the daemon."""
        daemon = self.home.daemon
        self.down_all()
        while (switch := self.last_switch()) is not None and switch.outcome is None:
            daemon.await_switch(len(switch.steps), switch.since)
        self.down_all()  # a switch may have brought one more
        for one in self.views():
            assert self.home.await_state(one.name, State.STOPPED, State.WEDGED).state is State.STOPPED
            daemon.forget(one.name)

    def down_all(self) -> None:
        """Asks every service to stop."""
        for view in self.views():
            self.home.daemon.down(view.name)

    def views(self) -> tuple[ServiceView, ...]:
        """All services, as the daemon tells them."""
        return self.home.daemon.status().services

    def last_switch(self) -> SwitchView | None:
        """The last switch since the daemon began."""
        try:
            return self.home.daemon.await_switch(10**6, limit_s=0.0)
        except StokerError:
            return None


class Sequence:
    """What a person, an agent and bad luck may do, in the order that chance gives."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.chance = random.Random(number)
        self.was_up: set[str] = set()
        for name in NAMES:
            world.script(name, fails=False)
        print(f"--- STOKER_FAULT_SEED={number}")

    def play(self) -> None:
        """Brings one of the group up, then does something after each look; in the end everything can be stopped."""
        self.up(self.chance.choice(GROUP), waits=True)
        for _ in range(STEPS - 1):
            self.check()
            self.chance.choice((
                self.any_up, self.any_switch, self.any_switch, self.down, self.rollback, self.change, self.adopt,
                self.kill_engine, self.kill_daemon,
            ))()  # fmt: skip
        self.check()
        self.world.clear()
        assert self.world.engines() == {}

    def note(self, what: str, *words: object) -> None:
        """Says what is done, for whoever looks for a fault."""
        self.world.done[what] += 1
        print(f"{time.monotonic():.2f}", what, *words)

    def wish(self, name: str) -> Wish:
        """Returns the wish for a service, by one of two plans."""
        self.was_up.add(name)
        return msgspec.structs.replace(self.world.wishes[name], parallel=self.chance.choice((1, 2)))

    def one_that_was_up(self) -> str:
        """Chooses a service that was asked for."""
        return self.chance.choice(sorted(self.was_up))

    def any_up(self) -> None:
        """Asks for any service."""
        self.up(self.chance.choice(NAMES), waits=self.chance.random() < WAITS_SHARE)

    def up(self, name: str, waits: bool) -> None:
        """Asks for a service; another of its group may be in the way."""
        wish = self.wish(name)
        self.note("up", name, wish.parallel, waits)
        with contextlib.suppress(StokerError):
            self.world.home.daemon.up(wish)
            if waits:
                self.world.home.await_state(name, State.READY, State.FAILED, State.STOPPED, State.WEDGED)

    def any_switch(self) -> None:
        """Puts a service in the place of another."""
        name, waits = self.chance.choice(GROUP), self.chance.random() < WAITS_SHARE
        wish = self.wish(name)
        self.note("switch", name, wish.parallel, waits)
        with contextlib.suppress(Refused):
            view = self.world.home.daemon.switch(wish)
            if waits:
                check_end(list(follow_switch(self.world.home.daemon, view))[-1])

    def down(self) -> None:
        """Asks for a service to stop."""
        name = self.one_that_was_up()
        self.note("down", name)
        with contextlib.suppress(WrongUse):  # one that was refused is not known
            self.world.home.daemon.down(name)

    def rollback(self) -> None:
        """Goes back to the plan before."""
        name = self.one_that_was_up()
        self.note("rollback", name)
        with contextlib.suppress(Refused, WrongUse):
            self.world.home.daemon.rollback(name)

    def adopt(self) -> None:
        """Starts an engine by hand, if none runs, and hands it over; or tries to hand over one that is watched already."""
        running = self.world.handmade is not None and self.world.handmade.poll() is None
        pid = self.world.handmade.pid if running and self.world.handmade else self.world.start_by_hand()
        self.note("adopt", pid, running)
        try:
            self.world.home.daemon.adopt(AdoptWish(pid, name=HANDMADE))
            assert not running
            self.was_up.add(HANDMADE)
        except Refused:
            if not running:  # the former of that name is still being ended
                self.world.end_by_hand()

    def change(self) -> None:
        """Breaks the engine that a service starts next, or mends it."""
        name, fails = self.chance.choice(NAMES), self.chance.random() < FAILS_SHARE
        self.note("change", name, fails)
        self.world.script(name, fails)

    def kill_engine(self) -> None:
        """Kills an engine with -9."""
        engines = self.world.engines()
        if engines:
            pid = self.chance.choice(sorted(engines))
            self.note("kill engine", engines[pid])
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_daemon(self) -> None:
        """Kills the daemon with -9, a moment after the last step; the next one takes the engines over."""
        after_s = self.chance.choice((0.0, 0.0, self.chance.uniform(0, LONGEST_S)))
        self.note("kill daemon", f"after {after_s:.3f} s")
        time.sleep(after_s)
        self.world.kill()
        self.world.serve()

    def check(self) -> None:
        """No two of the group, and whatever lives is known and explained."""
        two = Path(f"{self.world.lock}.two")
        assert not two.exists(), two.read_text()
        wait_for("a status that agrees with the processes", self.agrees)

    def agrees(self) -> bool:
        """Tells whether status and processes say the same; between the two looks things may have moved on."""
        views = {view.name: view for view in self.world.views()}
        engines = self.world.engines()
        assert len({marker for marker in engines.values() if marker.split("/")[1] in GROUP}) <= 1, engines
        for view in views.values():
            check_explained(view)
        known = all(marker.split("/")[1] in views for marker in engines.values())
        return known and all(agrees_with(view, engines) for view in views.values())


def check_end(view: SwitchView) -> None:
    """Checks that a switch that has ended says how and why."""
    print(f"  it ended: {view.outcome}, {view.why}")
    assert view.outcome is not None
    assert view.why
    assert (view.exit_code == 0) == (view.outcome == "ready")


def check_explained(view: ServiceView) -> None:
    """Checks that a state says since when, why, what it waits for, and who its engine is."""
    assert view.why, view
    assert view.since <= time.time() + 1, view
    assert view.state not in SAYS_WAIT or view.awaits, view
    assert view.state is not State.READY or view.pid, view
    assert view.state is not State.FAILED or view.exit_code, view


def agrees_with(view: ServiceView, engines: dict[int, str]) -> bool:
    """Tells whether a service's engine is the one it tells of, and there is none where it tells of none."""
    own = {pid for pid, marker in engines.items() if marker.split("/")[1] == view.name}
    if view.state is State.READY:
        return own == {view.pid}
    return not own if view.state in WITHOUT_ENGINE else len(own) <= 1


def test_random_sequences_keep_their_promises(home: Home) -> None:
    first = int(os.environ.get("STOKER_FAULT_SEED", random.randrange(10**6)))
    world = World(home)
    for number in range(first, first + COUNT):
        Sequence(world, number).play()
    print(dict(world.done))
    assert COUNT < 20 or set(world.done) >= {
        "up",
        "down",
        "switch",
        "rollback",
        "change",
        "adopt",
        "kill engine",
        "kill daemon",
    }
    world.end_by_hand()
    home.run("down")
    world.process.wait(60)
