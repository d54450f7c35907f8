"""Tuning the real llama.cpp beside what runs: nobody is interrupted, both are asked in turn, and nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import pytest

from home import Home, wait_for
from lying_program import write_lying_engine
from stoker.box import LocalBox
from stoker.config import read_config
from stoker.errors import Refused
from stoker.facts.machine.memory import read_memory
from stoker.flows.tunable import read_tunable
from stoker.flows.tune_asking import Asking
from stoker.flows.tune_beside import check_beside
from stoker.records import ServiceView, State
from support import fails
from tuned_service import OFF, QUICK, SELF, by_name, coder_table, configure, good_plans, write_server

BESIDE = ("tune", "coder", "--beside", "--content", "code", *QUICK)
SECOND = "coder-beside"
# The real engine, slowed down where it looks drafts up: two threads wait for each other on one core.
SLOWED = 'if "--spec-type" in words: words += ["--threads", "2"]; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})'


def configure_slowed(home: Home, limits: str = "") -> str:
    """Has a service that no lookup makes faster, so that the choice is what runs."""
    server = write_server(home, SLOWED)
    return configure(home, OFF.replace("reasoning", f'server = "{server}"\nreasoning') + '[alias]\nany = "*"\n', limits)


def services(home: Home) -> tuple[ServiceView, ...]:
    return home.daemon.status().services


def state_of_second(home: Home) -> State | None:
    return next((one.state for one in services(home) if one.name == SECOND), None)


def names(home: Home) -> set[str]:
    return {one.name for one in services(home)}


@contextmanager
def asked_all_the_time(home: Home) -> Iterator[list[int]]:
    """Asks for whatever runs again and again; gives the statuses of the answers."""
    statuses: list[int] = []
    is_over = threading.Event()
    body = {"model": "any", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 2}

    def ask() -> None:
        headers = {"authorization": f"Bearer {home.daemon.key}"}
        while not is_over.is_set():
            reply = httpx.post(f"{home.daemon.url}/v1/chat/completions", json=body, headers=headers, trust_env=False)
            statuses.append(reply.status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        is_over.set()
        thread.join()


def test_who_uses_the_service_is_not_interrupted_where_it_stays_as_it_is(home: Home) -> None:
    text = configure_slowed(home)
    home.run("up", "coder")
    before = home.service("coder")
    with asked_all_the_time(home) as statuses:
        view = home.json(*BESIDE, "--only", "ngram")
    ways = by_name(view)
    assert view["chosen"]["kind"] == "off"
    assert "each was asked in turn with off, which stayed up" in view["why"]
    measured = [name for name, one in ways.items() if one["tried"] == "measured"]
    assert {"off", "ngram"} <= set(measured)
    assert view["starts"] == len(measured) - 1, "what runs took no start"
    assert len(statuses) > len(measured)
    assert set(statuses) == {httpx.codes.OK}
    now = home.service("coder")
    assert (now.state, now.pid, now.plan_id) == (State.READY, before.pid, before.plan_id)
    assert names(home) == {"coder"}
    assert home.paths.config.read_text() == text
    run = home.json("bench", "show", str(ways["ngram"]["run_ids"][0]))["run"]
    assert run["subject"]["service"] == SECOND


def test_what_is_better_takes_its_place_and_rollback_goes_back(home: Home) -> None:
    configure(home, SELF)
    home.run("up", "coder")
    before = home.service("coder").plan_id
    view = home.json(*BESIDE, "--only", "ngram")
    ways = by_name(view)
    assert ways["off"]["measured"]["tok_s"] > ways["draft 4"]["measured"]["tok_s"], "it was asked beside it"
    assert view["chosen"]["kind"] in ("off", "ngram")
    assert coder_table(home)["speculation"] == view["chosen"]["kind"]
    now = home.service("coder")
    assert (now.state, now.plan_id == before) == (State.READY, False)
    assert names(home) == {"coder"}
    assert good_plans(home) == [before, now.plan_id]
    home.run("rollback", "coder")
    assert home.service("coder").plan_id == before


def test_what_rests_is_started_for_it_and_rests_again(home: Home) -> None:
    configure_slowed(home)
    view = home.json(*BESIDE, "--only", "ngram")
    measured = [one for one in view["ways"] if one["tried"] == "measured"]
    assert view["starts"] == len(measured) > 1
    assert names(home) == {"coder"}
    assert home.service("coder").state is State.STOPPED


def test_without_room_for_two_nothing_is_measured(home: Home) -> None:
    configure_slowed(home)
    home.run("up", "coder")
    before = home.service("coder")
    floor_bytes = read_memory(LocalBox()).available_bytes - before.memory_need_bytes // 2
    configure_slowed(home, limits=f"memory_floor_bytes = {floor_bytes}")
    done = home.run(*BESIDE, code=1)
    assert "there is no room for a second coder" in " ".join(done.stdout.split())
    assert "free; tune without --beside" in " ".join(done.stdout.split())
    assert home.json("bench", "list") == []
    assert (home.service("coder").pid, names(home)) == (before.pid, {"coder"})


def test_a_second_one_that_answers_wrongly_ends_it_and_the_first_is_as_it_was(home: Home) -> None:
    liar = write_lying_engine(home.folder / "liar", "no-done")
    lies = f'if "--spec-type" in words: os.execv({str(liar)!r}, [{str(liar)!r}, *words])'
    text = configure(home, OFF.replace("reasoning", f'server = "{write_server(home, lies)}"\nreasoning'))
    home.run("up", "coder")
    before = home.service("coder")
    done = home.run(*BESIDE, code=1)
    assert f"{SECOND} did not pass its gate that way" in " ".join(done.stdout.split())
    assert (home.service("coder").pid, names(home)) == (before.pid, {"coder"})
    assert home.paths.config.read_text() == text


def test_what_does_not_run_as_its_table_says_could_not_stay_up(home: Home) -> None:
    configure(home, OFF)
    home.run("up", "coder")
    before = home.service("coder")
    configure(home, OFF.replace("reasoning", "context = 512\nreasoning"))
    refused = home.run(*BESIDE, code=3).stderr
    assert "does not run as its table says" in refused
    assert (home.service("coder").pid, names(home)) == (before.pid, {"coder"})


@contextmanager
def tuning_beside(home: Home, *states: State) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Gives a tuning whose second service is in one of the states, and the first one's process."""
    configure_slowed(home)
    home.run("up", "coder")
    pid = home.service("coder").pid
    assert pid is not None
    argv = [sys.executable, "-u", "-m", "stoker", *BESIDE, "--measure", "5s", "--only", "ngram"]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any(line.startswith("off: ") for line in process.stdout)
        wait_for("the second one", lambda: state_of_second(home) in states)
        yield process, pid


COMING = (State.STARTING, State.LOADING, State.PROVING)


@pytest.mark.parametrize(
    ("number", "states"), [(signal.SIGINT, [State.READY]), (signal.SIGTERM, [State.READY]), (signal.SIGINT, COMING)]
)
def test_an_interruption_leaves_the_first_up_and_nothing_of_the_second(
    home: Home, number: signal.Signals, states: list[State]
) -> None:
    with tuning_beside(home, *states) as (process, pid):
        process.send_signal(number)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 1
    assert "interrupted" in said
    assert (home.service("coder").pid, names(home)) == (pid, {"coder"})


def test_where_the_first_dies_there_is_nothing_to_compare_with(home: Home) -> None:
    with tuning_beside(home, State.READY) as (process, pid):
        os.kill(pid, signal.SIGKILL)
        assert process.stdout is not None
        said = process.stdout.read()
    assert process.returncode == 1, said
    assert "coder did not answer while ngram" in " ".join(said.split())
    assert names(home) == {"coder"}


def test_what_cannot_run_twice_is_refused_before_anything_starts(home: Home) -> None:
    configure(home, OFF)
    tunable = read_tunable("coder", read_config(home.paths.config))
    asking = Asking(beside=True)
    check_beside(tunable, asking)
    spread = msgspec.structs.replace(tunable, wish=msgspec.structs.replace(tunable.wish, boxes=("a", "b")))
    with fails(Refused, "runs over several boxes", "without --beside"):
        check_beside(spread, asking)
    with fails(Refused, "`memory_share` cannot be tuned beside what runs"):
        check_beside(tunable, asking._replace(knob="memory_share"))
    with fails(Refused, "goodput cannot be tuned beside what runs"):
        check_beside(tunable, asking._replace(objective="goodput"))
    assert not home.daemon_answers


def test_a_name_that_is_taken_is_left_alone(home: Home) -> None:
    configure(home, OFF + OFF.replace("coder", SECOND))
    home.run("up", "coder")
    view: dict[str, Any] = home.json(*BESIDE, "--only", "ngram")
    run = home.json("bench", "show", str(by_name(view)["ngram"]["run_ids"][0]))["run"]
    assert run["subject"]["service"] == f"{SECOND}1"
