"""One model over two boxes: started together, watched together, ended together, whatever goes wrong with one of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from fake_engine import Script
from fake_rank import SERVICE, write_rank
from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Network
from stoker.errors import Refused
from stoker.flows.ranks.calls import find_calls
from stoker.records import ServiceView, State

MODEL = Path(__file__).parents[2] / "models" / "demo" / "hf"
Set = Callable[..., None]
pytestmark = IN_NAMESPACES


def set_up(box: Box, model: Path = MODEL, limits: str = "", more: str = "", **script: object) -> None:
    program = write_rank(box.folder / "rank", Script(**script))  # type: ignore[arg-type]
    box.configure(SERVICE.format(model=model, program=program, more=more), limits=limits)


def known(box: Box, name: str = "duo") -> ServiceView:
    with box.inside():
        return box.service(name)


def wait_until(box: Box, *states: State) -> ServiceView:
    with box.inside():
        return box.await_state("duo", *states)


@pytest.fixture
def pair(network: Network) -> Iterator[tuple[Box, Box]]:
    """Two boxes whose ranks do as they should; `a` may act on `b`."""
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b)
    a.join(b, "--act")
    yield a, b


def test_one_command_starts_all_ranks_and_the_head_answers_for_them(pair: tuple[Box, Box]) -> None:
    a, b = pair
    said = a.run("up", "duo").stdout
    assert "over NET/Socket" in known(a).why, said
    wait_for("the rank to be READY", lambda: known(b).state is State.READY and known(a).ranks[0].state is State.READY, 5.0)
    (rank,) = known(a).ranks
    assert (rank.rank, rank.box, rank.state, rank.transport) == (1, "b", State.READY, "NET/Socket")
    assert known(b).why.startswith("rank 1 of 2: the whole answered on a")
    assert known(b).address is None
    assert a.chat("duo").status_code == 200
    assert b.chat("duo").status_code == 404
    with a.client() as client:
        assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["duo"]
    shown = a.run("status").stdout
    assert "rank 1 on b" in shown and "NET/Socket" in shown
    a.run("down", "duo")
    assert (a.engines(), b.engines()) == ({}, {})
    assert known(b).state is State.STOPPED


def test_a_rank_that_dies_ends_the_others_and_the_whole_is_started_again(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = {*a.engines(), *b.engines()}
    os.kill(next(iter(b.engines())), signal.SIGKILL)
    with a.inside():
        wait_for("it to be noticed", lambda: a.service("duo").state is not State.READY, 5.0)
    view = wait_until(a, State.READY, State.FAILED)
    assert (view.state, view.restarts) == (State.READY, 1)
    assert len({*a.engines(), *b.engines()} - before) == 2
    assert not before & {*a.engines(), *b.engines()}
    assert a.chat("duo").status_code == 200


def test_a_head_that_dies_takes_the_workers_with_it(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = {*a.engines(), *b.engines()}
    os.kill(next(iter(a.engines())), signal.SIGKILL)
    with a.inside():
        wait_for("it to be noticed", lambda: a.service("duo").state is not State.READY, 5.0)
    assert wait_until(a, State.READY, State.FAILED).state is State.READY
    assert not before & {*a.engines(), *b.engines()}


def test_a_rank_that_hangs_while_it_loads_is_given_up_and_nothing_is_left(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    set_up(a, limits="load_s = 4.0")
    set_up(b, gate=str(b.folder / "never"))
    a.join(b, "--act")
    done = a.run("up", "duo", code=4)
    assert "did not load within 4 s" in done.stderr
    assert (a.engines(), b.engines()) == ({}, {})
    assert (known(a).state, known(b).state) == (State.FAILED, State.STOPPED)


def test_a_worker_that_cannot_start_is_named_and_the_head_is_never_started(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b, limits="memory_wait_s = 0.2\nmemory_floor_bytes = 100000000000000")
    a.join(b, "--act")
    done = a.run("up", "duo", code=1)
    assert "rank 1 on b is FAILED" in done.stderr and "93132.3 GiB kept" in done.stderr
    assert not a.paths.engine_log("duo").exists() or "rank" not in a.paths.engine_log("duo").read_text()
    assert (a.engines(), b.engines()) == ({}, {})


def test_boxes_with_different_models_are_refused_before_anything_starts(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    other = b.folder / "model"
    shutil.copytree(MODEL, other)
    (other / "tokenizer_config.json").write_text("{}")
    set_up(a)
    set_up(b, model=other)
    a.join(b, "--act")
    done = a.run("up", "duo", code=3)
    assert "have not the same model (a: " in done.stderr
    assert (a.engines(), b.engines()) == ({}, {})


def test_a_box_whose_own_file_says_nothing_of_the_service_starts_nothing(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    set_up(a)
    a.join(b, "--act")
    done = a.run("up", "duo", code=3)
    assert "the box `b` cannot take its part of duo" in done.stderr
    assert "give [service.duo] the same `boxes` on each box" in done.stderr


def test_a_link_that_may_only_look_starts_no_rank(network: Network) -> None:
    a, b = network.add("a"), network.add("b")
    set_up(a)
    set_up(b)
    a.join(b)
    done = a.run("up", "duo", code=3)
    assert "the link to `b` may ask its models and look, and no more" in done.stderr


def test_a_new_daemon_of_the_head_takes_all_ranks_back(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = {*a.engines(), *b.engines()}
    a.kill_daemon()
    a.run("up", "duo")
    assert {*a.engines(), *b.engines()} == before
    with a.inside():
        wait_for("the rank to be heard", lambda: a.service("duo").ranks)
    assert a.chat("duo").status_code == 200


def test_a_new_daemon_of_a_worker_takes_its_rank_back(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    before = {*a.engines(), *b.engines()}
    b.kill_daemon()
    b.run("boxes", "code")  # starts the next one
    assert wait_until(b, State.READY, State.FAILED).state is State.READY
    assert {*a.engines(), *b.engines()} == before
    assert a.chat("duo").status_code == 200


def test_a_rank_that_a_person_stops_on_its_box_stops_the_whole_for_good(pair: tuple[Box, Box]) -> None:
    a, b = pair
    a.run("up", "duo")
    b.run("down", "duo")
    view = wait_until(a, State.STOPPED)
    assert "rank 1 on b is" in view.why and "you asked for it" in view.why
    assert (a.engines(), b.engines()) == ({}, {})


def test_another_door_may_not_end_a_rank_that_is_not_its_own(pair: tuple[Box, Box], network: Network) -> None:
    a, b = pair
    c = network.add("c")
    c.join(b, "--act")
    a.run("up", "duo")
    with c.inside(), pytest.raises(Refused, match="and a's"):
        find_calls(c.paths, "b").stop_rank("duo")
    assert a.chat("duo").status_code == 200


def test_what_a_head_says_of_addresses_cannot_become_words_of_its_own(pair: tuple[Box, Box]) -> None:
    a = pair[0]
    a.run("up", "duo")
    plan = json.loads(msgspec.json.encode(find_plan(a)))
    part = plan["parts"][0]["ask"]
    part["link"]["ranks"][0]["address"] = "--headless"
    with a.inside(), pytest.raises(Exception, match="matching regex"):
        start_part(a, part)


def test_only_the_head_of_the_workers_own_table_gives_it_a_part_and_only_at_an_address_of_its_own(
    pair: tuple[Box, Box], network: Network
) -> None:
    a, b = pair
    c = network.add("c")
    c.join(b, "--act")
    a.run("up", "duo")
    part = json.loads(msgspec.json.encode(find_plan(a)))["parts"][0]["ask"]
    with c.inside(), pytest.raises(Refused, match="the box `c` is not the head of duo, `a` is"):
        start_part(c, part)
    before = b.paths.config.read_text()
    b.paths.config.write_text(before.replace("boxes = ", 'head_address = "10.77.0.98"\nboxes = '))
    with a.inside(), pytest.raises(Refused, match=r"the head of duo is at 10\.77\.0\.98 by this box's table, and says"):
        start_part(a, part)
    b.paths.config.write_text(before)
    part["link"]["ranks"][1]["address"] = "10.77.0.99"
    with a.inside(), pytest.raises(Refused, match=r"this box has no address 10\.77\.0\.99"):
        start_part(a, part)
    assert a.chat("duo").status_code == 200


def start_part(box: Box, part: object) -> None:
    """Has a box ask the second one for a part."""
    find_calls(box.paths, "b")._box.call("POST", "/api/ranks/duo/start", {"ask": part, "launch": "x"}, object)


def find_plan(box: Box) -> object:
    with box.inside():
        return box.daemon.plan_of("duo")


def test_a_cable_that_is_pulled_ends_both_sides_and_they_come_up_again_after(
    pair: tuple[Box, Box], network: Network
) -> None:
    a, b = pair
    a.run("up", "duo")
    network.cable(b, "down")
    with a.inside():
        wait_for("the head to give up", lambda: a.service("duo").state is not State.READY, 25.0)
    wait_for("the worker to end by itself", lambda: not b.engines(), 40.0)
    assert "was not heard for 30 s" in wait_until(b, State.FAILED).why
    network.cable(b, "up")
    a.limit_s = 90.0
    wait_until(a, State.READY, State.FAILED)
    a.run("up", "duo")
    assert a.chat("duo").status_code == 200
