"""A Stoker whose services run the real vLLM on the processor, in the environment that tools/make-vllm made."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
from openai.types.chat import ChatCompletionMessageParam

from home import Home
from stoker.box import is_running
from stoker.config import demo_model
from stoker.records import ServiceView

PYTHON = os.environ.get("STOKER_VLLM", "")
MODULE = (PYTHON, "-m", "vllm.entrypoints.openai.api_server")
DEMO = Path(__file__).parent.parent / "models" / "demo" / "hf"
HELLO: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who are you?"}]
SEGMENT = re.compile(r" (/dev/shm/psm_\S+)$", re.MULTILINE)
SERVICE = """
[service.{name}]
model = "{model}"
engine = "vllm"
program = {program}
context = 1024
parallel = 4
environment = {{ VLLM_NO_USAGE_STATS = "1", HF_HUB_OFFLINE = "1" }}
{more}
"""
PAIR = """
[service.duo]
model = "{model}"
engine = "vllm"
program = {program}
context = 1024
parallel = 4
boxes = ["a", "b"]
split = "tensor"
flags = {{ enforce-eager = true }}
environment = {{ VLLM_NO_USAGE_STATS = "1", HF_HUB_OFFLINE = "1", VLLM_CPU_OMP_THREADS_BIND = "nobind" }}
"""
EAGER = "flags = { enforce-eager = true }"  # compiling the model takes a minute, and is no part of what is tested


class VllmHome(Home):
    """A state folder with services of vLLM: `small`, `guessing` (speculates), `strict` (requires tools, without a parser)
    and `typo` (has a flag that does not exist).
    """

    limit_s = 240.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.leaders: set[int] = set()
        command = (str(Path(PYTHON).with_name("vllm")), "serve")
        self.configure(
            write_service("small", MODULE, f'{EAGER}\ngroup = "one"')
            + f'[service.other]\nmodel = "{demo_model()}"\ncontext = 1024\nreasoning = "off"\ngroup = "one"\n'
            + write_service("guessing", command, f'speculation = "ngram"\ndraft_tokens = 3\n{EAGER}')
            + write_service("strict", MODULE, f'{EAGER}\ngate = ["answers", "identity", "streaming", "tools"]')
            + write_service("typo", MODULE, "flags = { max-model-length = 4 }")
        )

    def bring_up(self, name: str) -> dict[str, Any]:
        """Brings a service up and returns what `stoker up` tells of it."""
        view: dict[str, Any] = self.json("up", name)
        self.leaders.add(view["pid"])
        return view

    def openai(self) -> openai.OpenAI:
        """A client of the gateway, which never repeats a request."""
        return openai.OpenAI(base_url=f"{self.daemon.url}/v1", api_key=self.daemon.key, max_retries=0)

    def ask_engine(self, view: ServiceView, path: str) -> str:
        """Returns what an engine itself answers, past the gateway."""
        key = self.paths.engine_key_file.read_text().strip()
        reply = httpx.get(f"{view.address}{path}", headers={"authorization": f"Bearer {key}"}, trust_env=False)
        assert reply.status_code == httpx.codes.OK, reply.text
        return reply.text

    def end(self) -> dict[int, str]:
        """Takes everything down; returns what was left of any engine, after killing it."""
        left = super().end() | {pid: "in the session" for leader in self.leaders for pid in family(leader)}
        for pid in left:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        return left


def write_service(name: str, program: tuple[str, ...], more: str) -> str:
    """Returns the table of a service of vLLM."""
    return SERVICE.format(name=name, model=DEMO, program=list(program), more=more)


def family(leader: int) -> set[int]:
    """Returns the living processes of an engine's session.

    Not by their environment: EngineCore and its workers write their new names over it.
    """
    return {pid for pid in psutil.pids() if _session(pid) == leader and is_running(pid)}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def shared_segments(leader: int) -> set[Path]:
    """Returns the shared memory that the processes of an engine hold; some of it is on no process's account."""
    maps = (Path(f"/proc/{pid}/maps") for pid in family(leader))
    return {Path(found) for file in maps if file.exists() for found in SEGMENT.findall(file.read_text())}


def write_pair() -> str:
    """Returns the table of a service over two boxes, `a` and `b`, which share its layers."""
    program = json.dumps([str(Path(PYTHON).with_name("vllm")), "serve"])
    return PAIR.format(model=DEMO, program=program)
