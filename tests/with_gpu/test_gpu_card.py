"""A card's memory: held by an engine that is killed while it answers and while it loads, and by another program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import openai
import psutil
import pytest

from gpu_home import CHAT, PYTHON, SGLANG, GpuHome, card_used_bytes, family, kept
from home import wait_for
from stoker.records import BEING_STARTED, GIB, MIB, State

SLACK_BYTES = 512 * MIB
pytestmark = [pytest.mark.elsewhere(SGLANG.is_here, "an unpacked SGLang (STOKER_SGLANG_SITE)"), pytest.mark.alone]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with one service, which takes half of the card."""
    with kept(GpuHome(tmp_path_factory.mktemp("card"), SGLANG, SGLANG.table("plain"))) as home:
        yield home


class Sample(NamedTuple):
    """What was held so long after the kill; the state is read first, so memory that it takes for back has to be back."""

    at_s: float
    state: State
    card_bytes: int
    host_bytes: int


def sample(home: GpuHome, killed_s: float) -> Sample:
    state = home.service("plain").state
    return Sample(time.monotonic() - killed_s, state, card_used_bytes(), psutil.virtual_memory().available)


def samples_until_it_loads_again(home: GpuHome, killed_s: float) -> list[Sample]:
    """Returns what was seen from the kill until the next start has begun."""
    seen = [sample(home, killed_s)]
    while seen[-1].state not in (State.STARTING, State.LOADING):
        assert seen[-1].at_s < home.limit_s, seen[-1]
        seen.append(sample(home, killed_s))
    return seen


def test_a_client_is_told_when_the_engine_dies_under_its_stream_and_its_memory_is_waited_for(home: GpuHome) -> None:
    rest = Sample(0.0, State.STOPPED, card_used_bytes(), psutil.virtual_memory().available)
    home.bring_up("plain")
    leader, held_bytes = home.service("plain").pid, card_used_bytes() - rest.card_bytes
    assert leader is not None and held_bytes > GIB
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(
            model="plain", messages=CHAT, stream=True, max_tokens=1800, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        os.kill(leader, signal.SIGKILL)
        killed_s = time.monotonic()
        with pytest.raises(openai.APIError, match="The engine of plain broke the connection"):
            list(stream)
    seen = samples_until_it_loads_again(home, killed_s)
    card_back = next(one for one in seen if one.card_bytes < rest.card_bytes + SLACK_BYTES)
    host_back = next((one for one in seen if one.host_bytes > rest.host_bytes - GIB), None)  # others use the host too
    settled = next(one for one in seen if one.state in (State.BACKOFF, *BEING_STARTED))
    home.note(
        "memory back", "plain", held_bytes=held_bytes, card_back_s=card_back.at_s, settled_s=settled.at_s,
        host_back_s=host_back and host_back.at_s, next_start_s=seen[-1].at_s,
    )  # fmt: skip
    early = [one for one in seen[:-1] if one.at_s >= settled.at_s and one.card_bytes >= rest.card_bytes + SLACK_BYTES]
    assert early == []
    assert family(leader) == set()
    again = home.await_state("plain", State.READY)
    assert again.pid is not None
    home.leaders.add(again.pid)


def test_one_killed_while_it_loads_has_failed_and_its_memory_is_back(home: GpuHome) -> None:
    home.run("down")
    rest_bytes = card_used_bytes()
    with subprocess.Popen([sys.executable, "-m", "stoker", "up", "plain"], env=home.environment) as starting:
        wait_for("the daemon", lambda: home.daemon_answers)
        view = home.await_state("plain", State.LOADING)
        assert view.pid is not None
        wait_for("memory on the card", lambda: card_used_bytes() > rest_bytes + SLACK_BYTES, limit_s=120.0)
        os.kill(view.pid, signal.SIGKILL)
        assert starting.wait(home.limit_s) != 0
    assert home.service("plain").state is State.FAILED
    assert card_used_bytes() < rest_bytes + SLACK_BYTES


HOLDER = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
held = torch.empty(free - (1 << 30), dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_card_that_another_program_holds_is_waited_for_and_the_program_is_named(home: GpuHome) -> None:
    home.run("down")
    argv = [sys.executable, "-m", "stoker", "up", "plain"]
    with subprocess.Popen([PYTHON, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with subprocess.Popen(argv, env=home.environment) as starting:
            wait_for("the daemon", lambda: home.daemon_answers)
            waiting = home.await_state("plain", State.WAITING_FOR_MEMORY)
            home.note("held", "plain", why=waiting.why, awaits=waiting.awaits)
            assert waiting.awaits is not None and f"(pid {holder.pid})" in waiting.awaits
            assert starting.poll() is None
            holder.stdin.close()
            holder.wait(60)
            assert starting.wait(home.limit_s) == 0
    view = home.service("plain")
    assert view.state is State.READY and view.pid is not None
    home.leaders.add(view.pid)
