"""What a new daemon does about engines that a killed one left."""

from __future__ import annotations

import os
import signal
import sqlite3

import msgspec

from home import Home, wait_for
from stoker.config import read_config
from stoker.records import State, Wish


def test_a_living_engine_is_taken_back_and_proved_again(home: Home) -> None:
    first = home.json("up")
    home.kill_daemon()
    unattended = home.json("status")
    assert unattended["daemon"]["running"] is False
    assert unattended["services"][0]["pid"] == first["pid"]
    assert "no daemon attends to it" in unattended["services"][0]["why"]
    again = home.json("up")
    assert again["state"] == "READY"
    assert again["pid"] == first["pid"]
    assert list(home.engines()) == [first["pid"]]
    assert home.json("ask", "Hello?", "--max-tokens", "4")["answer"]


def test_an_engine_that_died_meanwhile_is_started_again(home: Home) -> None:
    first = home.json("up")
    home.kill_daemon()
    os.kill(first["pid"], signal.SIGKILL)
    wait_for("the engine's end", lambda: not home.engines())
    assert home.json("status")["services"][0]["state"] == "STOPPED"
    again = home.json("up")
    assert again["state"] == "READY"
    assert len(home.engines()) == 1


def test_what_was_stopped_stays_stopped(home: Home) -> None:
    home.run("up")
    home.run("down", "demo")
    home.kill_daemon()
    home.add_fake("other")
    home.run("up", "other")
    assert home.service("demo").state is State.STOPPED
    assert len(home.engines()) == 1


def test_an_engine_that_was_being_loaded_is_taken_back_too(home: Home) -> None:
    folder = home.folder / "gates"
    folder.mkdir()
    home.add_fake("slow", gate=str(folder / "open"))
    home.json("up")
    home.daemon.up(wish_of(home, "slow"))
    home.await_state("slow", State.LOADING)
    before = home.service("slow").pid
    home.kill_daemon()
    home.json("up")
    (folder / "open").touch()
    assert home.await_state("slow", State.READY).pid == before


def test_a_plan_that_was_to_come_next_is_not_lost(home: Home) -> None:
    home.configure(limits="stop_grace_s = 60")
    home.add_fake("changing", ignores_term=True)
    home.add_fake("other")
    first = home.json("up", "changing")
    home.daemon.up(msgspec.structs.replace(wish_of(home, "changing"), parallel=2))
    wanted = home.await_state("changing", State.STOPPING)
    home.kill_daemon()
    home.configure(limits="stop_grace_s = 0.2")
    home.add_fake("other")
    home.run("up", "other")
    second = home.await_state("changing", State.READY)
    assert second.pid != first["pid"]
    assert second.plan_id not in (first["plan_id"], wanted.plan_id)


def test_an_engine_that_the_store_does_not_know_is_ended(home: Home) -> None:
    home.run("up")
    home.kill_daemon()
    database = sqlite3.connect(home.paths.database)
    database.execute("DELETE FROM services")
    database.commit()
    database.close()
    home.add_fake("other")
    home.run("up", "other")
    assert {marker.split("/")[1] for marker in home.engines().values()} == {"other"}


def test_down_without_a_daemon_ends_what_it_left(home: Home) -> None:
    home.run("up")
    home.kill_daemon()
    assert "Ended without it: demo" in home.run("down").stdout
    assert home.engines() == {}
    home.add_fake("other")
    home.run("up", "other")
    assert home.service("demo").state is State.STOPPED


def test_a_daemon_that_is_told_to_end_brings_its_services_back_next_time(home: Home) -> None:
    home.run("up")
    pid = home.daemon_pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_for("the daemon's end", lambda: home.daemon_pid is None)
    assert home.engines() == {}
    home.add_fake("other")
    home.run("up", "other")
    home.await_state("demo", State.READY)


def test_a_second_daemon_says_who_holds_the_state_folder(home: Home) -> None:
    home.run("up")
    said = home.run("serve", code=3).stderr
    assert f"pid {home.daemon_pid}" in said
    assert "STOKER_STATE" in said


def wish_of(home: Home, name: str) -> Wish:
    """Returns the wish of a service in stoker.toml."""
    return read_config(home.paths.config).services[name]


def test_down_without_a_daemon_and_without_its_database_ends_the_engines_too(home: Home) -> None:
    home.run("up")
    home.kill_daemon()
    for file in home.paths.state.glob("stoker.db*"):
        file.unlink()
    assert "Ended without it: demo" in home.run("down").stdout
    assert home.engines() == {}


def test_down_of_an_unknown_service_without_a_daemon_is_wrong_use(home: Home) -> None:
    home.run("up")
    home.run("down")
    assert "there is no service called `nosuch`" in home.run("down", "nosuch", code=2).stderr
