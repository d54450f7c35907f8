"""Acts in two steps: nothing happens by the first, and by the second only what the first told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agent import ask_as_agent, ask_tool, ask_wrongly
from home import Home
from stoker.errors import Refused
from stoker.flows.acts import EXPIRES_S
from stoker.flows.proposals import Proposals
from stoker.mcp.desk import BURST, REFILL_S, Pace
from stoker.records import State
from stoker.store.audit import read_audit

ACT = "--allow-actions"


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Returns its time."""
        return self.now


def outcomes(home: Home) -> list[str]:
    """What was recorded, in order."""
    return [f"{one.act} {one.service}: {one.outcome}" for one in read_audit(home.paths.audit)]


def test_a_service_is_started_and_stopped_by_what_was_proposed_and_all_is_recorded(home: Home) -> None:
    home.add_fake("one")

    async def start(client: Client) -> Any:
        proposed = await ask_tool(client, "start_service", service="one")
        assert (await ask_tool(client, "service_status")).get("services") is None  # a proposal starts nothing
        done = await ask_tool(client, "confirm_action", token=proposed["token"])
        assert "no proposal with this token" in await ask_wrongly(client, "confirm_action", token=proposed["token"])
        return proposed, done

    proposed, done = ask_as_agent(home, start, ACT)
    assert (proposed["act"], proposed["service"], done["service"]) == ("start", "one", "one")
    assert home.await_state("one", State.READY).plan_id == proposed["plan_id"]

    async def stop(client: Client) -> Any:
        proposed = await ask_tool(client, "stop_service", service="one")
        assert home.service("one").state is State.READY
        return await ask_tool(client, "confirm_action", token=proposed["token"])

    ask_as_agent(home, stop, ACT)
    home.await_state("one", State.STOPPED)
    said = outcomes(home)
    assert [re.sub(r"begun: .*", "begun", one) for one in said] == [
        "start one: proposed", "start one: confirmed", "start one: begun",
        "stop one: proposed", "stop one: confirmed", "stop one: begun",
    ]  # fmt: skip
    assert {one.who for one in read_audit(home.paths.audit)} == {"mcp 0.1.0"}
    assert home.paths.audit.stat().st_mode & 0o777 == 0o600
    assert proposed["token"] not in home.paths.audit.read_text()


def test_a_switch_is_proposed_with_those_that_may_go_and_done(home: Home) -> None:
    home.add_fake("one", 'group = "models"')
    home.add_fake("two", 'group = "models"')
    home.run("up", "one")

    async def story(client: Client) -> Any:
        proposed = await ask_tool(client, "switch_service", service="two")
        await ask_tool(client, "confirm_action", token=proposed["token"])
        return proposed

    assert ask_as_agent(home, story, ACT)["goes"] == ["one"]
    home.await_state("two", State.READY)
    home.await_state("one", State.STOPPED)


def test_a_token_is_stale_once_the_plan_is_another(home: Home) -> None:
    home.add_fake("one")

    async def story(client: Client) -> str:
        proposed = await ask_tool(client, "start_service", service="one")
        home.paths.config.write_text(home.paths.config.read_text().replace("gate = []", "gate = []\ncontext = 512"))
        return await ask_wrongly(client, "confirm_action", token=proposed["token"])

    assert "would run by another plan by now" in ask_as_agent(home, story, ACT)
    assert not home.daemon_answers
    assert outcomes(home)[-1].startswith("start one: failed: one would run by another plan")


def test_an_agent_can_name_only_services_that_the_owner_wrote_down(home: Home) -> None:
    home.add_fake("one")

    async def story(client: Client) -> None:
        for service in ("/bin/sh", "../x", "nobody", "", "one; rm -rf /", "$(id)"):
            assert "there is no service called" in await ask_wrongly(client, "start_service", service=service)
            assert "does not run" in await ask_wrongly(client, "stop_service", service=service)

    ask_as_agent(home, story, ACT)
    assert outcomes(home) == []


def test_a_token_of_another_session_is_worth_nothing(home: Home) -> None:
    home.add_fake("one")
    proposed = ask_as_agent(home, lambda client: ask_tool(client, "start_service", service="one"), ACT)
    said = ask_as_agent(home, lambda client: ask_wrongly(client, "confirm_action", token=proposed["token"]), ACT)
    assert "no proposal with this token" in said


def test_a_token_expires(home: Home) -> None:
    home.add_fake("one")
    clock = Clock()
    proposals = Proposals(home.paths, "tester", clock)
    token = proposals.propose("start", "one").token
    clock.now += EXPIRES_S + 1
    with pytest.raises(Refused, match="no proposal with this token"):
        proposals.confirm(token)
    assert not home.daemon_answers


def test_nothing_is_done_that_cannot_be_recorded(home: Home) -> None:
    home.add_fake("one")
    home.paths.state.mkdir(parents=True, exist_ok=True)
    home.paths.audit.mkdir()  # where lines should be added
    said = ask_as_agent(home, lambda client: ask_wrongly(client, "start_service", service="one"), ACT)
    assert "cannot be written" in said
    assert not home.daemon_answers


def test_a_record_that_a_power_cut_broke_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "agents.jsonl"
    whole = {"at": 1.0, "who": "x", "act": "stop", "service": "one", "plan_id": "p", "outcome": "proposed"}
    file.write_text(json.dumps(whole) + "\n" + '{"at": 2.0, "wh')
    assert [one.service for one in read_audit(file)] == ["one"]


def test_the_pace_lets_a_burst_through_and_then_one_at_a_time() -> None:
    clock = Clock()
    pace = Pace(clock)
    for _ in range(BURST):
        pace.take()
    with pytest.raises(Refused, match="too many calls"):
        pace.take()
    clock.now += REFILL_S
    pace.take()
    with pytest.raises(Refused, match="too many calls"):
        pace.take()
    clock.now += 3600
    for _ in range(BURST):
        pace.take()
    with pytest.raises(Refused, match="too many calls"):
        pace.take()
