"""An agent mends a service: it diagnoses, proposes and confirms; nothing stands in stoker.toml that did not become READY."""

from __future__ import annotations

import tomllib
from typing import Any

from mcp import Client

from agent import ask_as_agent, ask_tool, ask_wrongly, refusal
from home import Home, wait_for
from stoker.config import demo_model
from stoker.flows.proposals import Proposals
from stoker.records import State
from stoker.store.audit import read_audit

ACT = "--allow-actions"
WRONG_FLAG = f'[service.coder]\nmodel = "{demo_model()}"\nflags = {{ max-model-len = 512 }}\n'  # vLLM's, given to llama.cpp
PICKLING = "_pickle.PicklingError: Can't pickle <function> while storing AOTAutograd cache"
VARIABLE = "TORCHINDUCTOR_AUTOGRAD_CACHE"


def outcomes(home: Home) -> list[str]:
    return [one.outcome for one in read_audit(home.paths.audit) if one.act == "fix"]


def test_a_real_engine_that_refuses_a_flag_is_mended_by_an_agent(home: Home) -> None:
    home.configure(WRONG_FLAG)
    home.run("up", "coder", code=1)
    before = home.paths.config.read_text()

    async def mend(client: Client) -> Any:
        told = await ask_tool(client, "diagnose_service", service="coder")
        assert told["findings"][0]["drop"] == ["--max-model-len"]
        proposed = await ask_tool(client, "apply_fix", service="coder")
        assert (home.paths.config.read_text(), home.service("coder").state) == (before, State.FAILED)
        assert "no proposal with this token" in await ask_wrongly(client, "confirm_action", token=f"{proposed['token']}x")
        done = await ask_tool(client, "confirm_action", token=proposed["token"])
        assert "no proposal with this token" in await ask_wrongly(client, "confirm_action", token=proposed["token"])
        return proposed, done

    proposed, done = ask_as_agent(home, mend, ACT)
    assert (proposed["act"], proposed["rule"]) == ("fix", "flag-not-known")
    assert "- --max-model-len 512" in proposed["settings"]
    assert "coder is READY" in done["outcome"]
    view = home.service("coder")
    assert (view.state, view.plan_id) == (State.READY, proposed["plan_id"])
    assert "flags" not in tomllib.loads(home.paths.config.read_text())["service"]["coder"]
    assert "# fix of flag-not-known: " in home.paths.config.read_text()
    [backup] = home.folder.glob("stoker.toml.before-*")
    assert backup.read_text() == before
    assert [one.partition(":")[0] for one in outcomes(home)] == ["proposed", "confirmed", "begun", "done"]
    assert {one.who for one in read_audit(home.paths.audit)} == {"mcp 0.1.0"}


def test_a_fix_that_does_not_help_leaves_all_as_it_was(home: Home) -> None:
    home.configure(limits="switch_cooldown_s = 0")
    home.add_fake("chat", 'group = "one"')
    home.add_fake("coder", 'group = "one"', dies="loading", prints=PICKLING)
    home.run("up", "coder", code=1)
    home.run("up", "chat")
    before = home.paths.config.read_text()

    async def mend(client: Client) -> str:
        proposed = await ask_tool(client, "apply_fix", service="coder")
        assert proposed["goes"] == ["chat"]
        return await ask_wrongly(client, "confirm_action", token=proposed["token"])

    assert "coder did not take its place" in ask_as_agent(home, mend, ACT)
    assert home.service("chat").state is State.READY
    assert home.paths.config.read_text() == before
    assert outcomes(home)[-1] == "failed: coder did not take its place"


def test_a_fix_is_stale_once_the_file_says_something_else(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING, needs=VARIABLE)
    home.run("up", "coder", code=1)

    async def mend(client: Client) -> str:
        proposed = await ask_tool(client, "apply_fix", service="coder")
        with home.paths.config.open("a") as file:
            file.write(f'\n[service.coder.environment]\n{VARIABLE} = "1"\n')
        return await ask_wrongly(client, "confirm_action", token=proposed["token"])

    assert "would be changed otherwise by now" in ask_as_agent(home, mend, ACT)
    assert home.service("coder").state is State.FAILED


def test_what_no_setting_mends_and_what_nobody_wrote_down_is_refused(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints="OSError: [Errno 98] Address already in use")
    home.run("up", "coder", code=1)
    assert "no setting of the service mends this" in refusal(home, "apply_fix", ACT, service="coder")
    assert "there is no service called" in refusal(home, "apply_fix", ACT, service="../coder")
    assert outcomes(home) == []


def test_a_fix_that_takes_longer_than_a_call_is_seen_through(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING, needs=VARIABLE)
    home.run("up", "coder", code=1)
    proposals = Proposals(home.paths, "tester")
    _, outcome = proposals.confirm(proposals.propose("fix", "coder").token, follow_s=0.0)
    assert "still on its way" in outcome
    wait_for("the end to be recorded", lambda: outcomes(home)[-1].startswith("done: coder is READY"))
    assert f'{VARIABLE} = "0"' in home.paths.config.read_text()
