"""The real llama.cpp in a container of a real podman, from a mounted environment: started, asked, taken over, ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import stoker
from container_home import IMAGE, INSTANCE, ContainerHome, container_home
from real_tools import OwnPodman
from stoker.facts.machine.ports import pick_free_port
from stoker.records import Handle, Plan, Setting
from stoker.supervise.process import read_boot_id
from stoker.supervise.runtimes import Start
from support import DEMO, make_plan

KEY = "the-engines-key"
LOAD_POLLS, POLL_S = 600, 0.1


@pytest.fixture
def home(podman: OwnPodman, tmp_path: Path) -> Iterator[ContainerHome]:
    with container_home(podman, tmp_path) as home:
        yield home


def places() -> tuple[tuple[str, str], ...]:
    """The folders that a Python with the engine in it needs, each where it is."""
    needed = {"/usr", "/lib", "/lib64", sys.prefix, sys.base_prefix, str(Path(stoker.__file__).parent.parent)}
    there = sorted(folder for folder in needed if Path(folder).exists())
    apart = [one for one in there if not any(one.startswith(f"{other}/") for other in there)]
    return tuple((folder, f"{folder}:ro") for folder in apart)


def engine_plan() -> Plan:
    settings = (Setting("context_total", 512, "a test"), Setting("parallel", 1, "a test"), Setting("threads", 1, "a test"))
    return make_plan(
        *settings, image=IMAGE, model="tiny", model_path=str(DEMO), mounts=places(),
        program=(sys.executable, "-P", "-m", "stoker.embedded"),
    )  # fmt: skip


async def answer(port: int, key: str) -> tuple[int, int]:
    """Asks for tokens once the engine is healthy; returns the status and how many tokens came."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
        for _ in range(LOAD_POLLS):
            try:
                if (await client.get("/health")).status_code == httpx.codes.OK:
                    break
            except httpx.TransportError:
                pass
            await asyncio.sleep(POLL_S)
        body = {"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]}
        reply = await client.post("/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"})
        return reply.status_code, reply.json().get("usage", {}).get("completion_tokens", 0)


def test_llama_cpp_in_a_container_gives_tokens_to_who_has_the_key(home: ContainerHome) -> None:
    plan, port = engine_plan(), pick_free_port("127.0.0.1")
    handle = Handle(1, f"{INSTANCE}/small/1", None, None, read_boot_id(), port, 0)

    async def run() -> None:
        start = Start(plan, 1, handle.marker, port, KEY, home.log())
        running = await home.runtime().start(start, handle, home.saved.append)
        waiting = asyncio.ensure_future(running.wait())
        assert await answer(port, "wrong") == (401, 0)
        status, tokens = await answer(port, KEY)
        assert status == 200
        assert tokens > 0
        assert (running.memory_bytes() or 0) > 20 * 2**20
        found = await home.runtime().find(home.saved[-1])
        assert found is not None
        assert found.pid == running.pid
        assert KEY not in Path(f"/proc/{running.pid}/cmdline").read_text()  # noqa: ASYNC240
        assert await home.runtime().stop(running, 20, 20) == ""
        assert await waiting == "exit code 0"

    asyncio.run(run())
    log = home.log().read_text()
    assert "listening on" in log
    assert KEY not in log
    assert KEY not in str(home.saved)
    assert home.names() == []
