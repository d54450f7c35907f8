"""The real vLLM on a GPU: plain and with every way to draft, with tools and without, killed, and found again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import openai
import pytest

from gpu_drafts import check_measured_as_counted, check_same_words, say_alone
from gpu_home import CHAT, MODELS, VLLM, GpuHome, Said, check_plain, family, kept
from home import wait_for
from stoker.records import State
from verdicts_seen import checks_of, verdicts_of

DRAFTS = {
    "ngram": 'speculation = "ngram"\ndraft_tokens = 3',
    "draft": f'speculation = "draft"\ndraft = "{MODELS}/hf-draft"\ndraft_tokens = 4',
    "eagle": f'speculation = "eagle"\ndraft = "{MODELS}/hf-eagle"\ndraft_tokens = 4',
    "eagle3": f'speculation = "eagle3"\ndraft = "{MODELS}/hf-eagle3"\ndraft_tokens = 4',
}
PARSERS = ', enable-auto-tool-choice = true, tool-call-parser = "hermes", reasoning-parser = "deepseek_v3"'
pytestmark = pytest.mark.elsewhere(VLLM.is_here, "an unpacked vLLM for a GPU (STOKER_VLLM_SITE)")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with a service for each way to draft, one of which runs at a time."""
    engine = VLLM.beside_others
    tables = [engine.table(name, f'{more}\ngroup = "one"') for name, more in {"plain": "", **DRAFTS}.items()]
    tables.append(engine.table("parsing", 'group = "one"', PARSERS))
    with kept(GpuHome(tmp_path_factory.mktemp("vllm"), engine, "".join(tables))) as home:
        yield home


@pytest.fixture(scope="module")
def plain(home: GpuHome, tmp_path_factory: pytest.TempPathFactory) -> list[Said]:
    """What the model says without drafts."""
    return say_alone(home, tmp_path_factory)


def test_it_is_proved_verified_and_measured_and_what_it_lacks_for_tools_is_named(home: GpuHome, plain: list[Said]) -> None:
    assert len(plain) == 200
    report = check_plain(home, "tools")
    auto = checks_of(report)["tools: auto"]
    assert (auto["verdict"], auto["mend"]) == (
        "not offered", "start it with `--enable-auto-tool-choice --tool-call-parser hermes`",
    )  # fmt: skip


def test_a_client_is_told_when_the_engine_dies_under_its_stream_and_it_comes_back(home: GpuHome) -> None:
    home.bring_up("plain")
    leader = home.service("plain").pid
    assert leader is not None
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(
            model="plain", messages=CHAT, stream=True, max_tokens=1800, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        os.kill(leader, signal.SIGKILL)
        killed_s = time.monotonic()
        with pytest.raises(openai.APIError, match="The engine of plain broke the connection"):
            list(stream)
    # Its connections break before its last thread is gone, which may take a while where a driver cleans up.
    wait_for("its end to be noticed", lambda: home.service("plain").state is not State.READY)
    again = home.await_state("plain", State.READY)
    assert again.pid is not None and again.pid != leader
    home.note("killed", "while it answers", ready_again_s=time.monotonic() - killed_s)
    home.leaders.add(again.pid)
    assert family(leader) == set()


def test_an_engine_core_whose_server_died_unattended_is_ended_before_the_next_start(home: GpuHome) -> None:
    home.json("up", "plain")
    leader = home.service("plain").pid
    assert leader is not None
    home.kill_daemon()
    os.kill(leader, signal.SIGKILL)
    wait_for("the server's end", lambda: leader not in family(leader))
    left = family(leader)
    again = home.bring_up("plain")
    home.note("orphan", "plain", processes=len(left))
    assert left  # else there was nothing to be found
    assert again.pid != leader
    assert family(leader) == set()


@pytest.mark.parametrize("way", DRAFTS)
def test_a_way_to_draft_says_the_same_and_is_measured_as_it_counts_itself(
    home: GpuHome, tmp_path_factory: pytest.TempPathFactory, way: str
) -> None:
    home.run("down")
    home.bring_up(way)
    try:
        check_measured_as_counted(home, way)
        guessed = home.say_greedily(way)
    finally:
        home.run("down", way)
    check_same_words(home, way, say_alone(home, tmp_path_factory), guessed)


def test_tools_are_called_where_a_parser_is_given(home: GpuHome) -> None:
    home.run("down")
    home.bring_up("parsing")
    report = home.json("verify", "parsing", "--probe", "tools")
    home.note("verify", "parsing", verdicts=verdicts_of(report))
    assert checks_of(report)["tools: auto"]["verdict"] == "pass"
