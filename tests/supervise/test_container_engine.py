"""The real llama.cpp in a container of a real podman, from a mounted environment: started, asked, taken over, ended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from container_home import IMAGE, INSTANCE, ContainerHome, container_home, places
from real_tools import OwnPodman
from stoker.facts.machine.ports import pick_free_port
from stoker.flows.planning import demo_wish, make_plan
from stoker.records import Handle, Plan
from stoker.supervise.containers.running import ContainerRunning
from stoker.supervise.process import read_boot_id
from stoker.supervise.runtimes import Start

KEY = "the-engines-key"
LOAD_POLLS, POLL_S = 600, 0.1


@pytest.fixture
def home(podman: OwnPodman, tmp_path: Path) -> Iterator[ContainerHome]:
    with container_home(podman, tmp_path) as home:
        yield home


def engine_plan() -> Plan:
    """Returns the plan that a service of stoker.toml would get."""
    program = (sys.executable, "-P", "-m", "stoker.embedded")
    mounts = tuple(f"{host}:{inside}" for host, inside in places())
    changes = {"name": "small", "served_name": "tiny", "image": IMAGE, "program": program, "mounts": mounts, "context": 512}
    return make_plan(msgspec.structs.replace(demo_wish(), engine="llamacpp", **changes))


async def answer(running: ContainerRunning, port: int, key: str, log: Path) -> tuple[int, int]:
    """Asks for tokens once the engine is healthy; returns the status and how many tokens came."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
        for _ in range(LOAD_POLLS):
            try:
                if (await client.get("/health")).status_code == httpx.codes.OK:
                    break
            except httpx.TransportError:
                assert running.is_alive(), f"{await running.wait()}: {log.read_text()}"  # noqa: ASYNC240
            await asyncio.sleep(POLL_S)
        body = {"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]}
        reply = await client.post("/v1/chat/completions", json=body, headers={"authorization": f"Bearer {key}"})
        return reply.status_code, reply.json().get("usage", {}).get("completion_tokens", 0)


def test_llama_cpp_in_a_container_gives_tokens_to_who_has_the_key(
    home: ContainerHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in home.podman.environment.items():
        monkeypatch.setenv(name, value)
    plan, port = engine_plan(), pick_free_port("127.0.0.1")
    handle = Handle(1, f"{INSTANCE}/small/1", None, None, read_boot_id(), port, 0)

    async def run() -> None:
        start = Start(plan, 1, handle.marker, port, KEY, home.log(), home.folder)
        running = await home.runtime().start(start, handle, home.saved.append)
        waiting = asyncio.ensure_future(running.wait())
        assert await answer(running, port, "wrong", home.log()) == (401, 0)
        status, tokens = await answer(running, port, KEY, home.log())
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
