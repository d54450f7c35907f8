"""A card's memory: held by an engine that is killed while it answers and while it loads, and by another program.

An engine's memory of the host is back once none of its threads lives: the kernel frees what a process held, what its
driver had pinned too, before the last one is a zombie. What is available on a host that others use too would not tell.
"""

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

from gpu_home import CHAT, PYTHON, SGLANG, GpuHome, card_used_bytes, family, kept, threads_of
from home import wait_for
from stoker.records import BEING_STARTED, GIB, MIB, State

SLACK_BYTES = 512 * MIB
NO_LONGER_S = 2.0  # than memory was held is waited for it: some looks of the daemon's, and of this test
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
    holds_card: bool
    holds_host: bool


def samples_until_it_loads_again(home: GpuHome, leader: int, rest_bytes: int, killed_s: float) -> list[Sample]:
    """Returns what an engine held from its kill until the next start has begun. `rest_bytes` is the card's without it."""
    seen: list[Sample] = []
    while not seen or seen[-1].state not in (State.STARTING, State.LOADING):
        state = home.service("plain").state
        at_s = time.monotonic() - killed_s
        assert at_s < home.limit_s, state
        seen.append(Sample(at_s, state, card_used_bytes() >= rest_bytes + SLACK_BYTES, bool(threads_of(leader))))
    return seen


def test_a_client_is_told_when_the_engine_dies_under_its_stream_and_its_memory_is_waited_for(home: GpuHome) -> None:
    rest_bytes = card_used_bytes()
    home.bring_up("plain")
    leader, held_bytes = home.service("plain").pid, card_used_bytes() - rest_bytes
    assert leader is not None and held_bytes > GIB
    host_bytes = sum(psutil.Process(pid).memory_full_info().pss for pid in family(leader))
    with openai.OpenAI(base_url=f"{home.daemon.url}/v1", api_key=home.daemon.key, max_retries=0) as client:
        stream = client.chat.completions.create(
            model="plain", messages=CHAT, stream=True, max_tokens=1800, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        os.kill(leader, signal.SIGKILL)
        killed_s = time.monotonic()
        with pytest.raises(openai.APIError, match="The engine of plain broke the connection"):
            list(stream)
    seen = samples_until_it_loads_again(home, leader, rest_bytes, killed_s)
    card_back = next(one for one in seen if not one.holds_card)
    host_back = next(one for one in seen if not one.holds_host)
    settled = next(one for one in seen if one.state in (State.BACKOFF, *BEING_STARTED))
    home.note(
        "memory back", "plain", held_bytes=held_bytes, held_host_bytes=host_bytes, card_back_s=card_back.at_s,
        host_back_s=host_back.at_s, settled_s=settled.at_s, next_start_s=seen[-1].at_s,
    )  # fmt: skip
    assert [one for one in seen[:-1] if one.at_s >= settled.at_s and (one.holds_card or one.holds_host)] == []
    assert settled.at_s - max(card_back.at_s, host_back.at_s) < NO_LONGER_S
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
        killed_s = time.monotonic()
        assert starting.wait(home.limit_s) != 0
    failed = home.service("plain")
    home.note("killed", "while it loads", failed_s=time.monotonic() - killed_s, why=failed.why)
    assert failed.state is State.FAILED
    assert card_used_bytes() < rest_bytes + SLACK_BYTES
    assert family(view.pid) == set()


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
