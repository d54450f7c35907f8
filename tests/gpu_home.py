"""A Stoker whose services run real engines on a GPU, from a folder into which such an engine was unpacked.

`STOKER_SGLANG_SITE` and `STOKER_VLLM_SITE` name the folders, `STOKER_GPU_PYTHON` the Python whose torch sees the GPU, and
`STOKER_GPU_OUT` where results and logs go. vLLM computes in float32 and IEEE arithmetic, so that two ways to the same sum
say the same to the token; SGLang's kernels have no float32, so it computes in float16, and two tokens that are nearly as
likely may change places.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import psutil
from openai.types.chat import ChatCompletionMessageParam

from bench_seen import run_bench
from home import Home
from stoker.bench.prompts import units_of
from stoker.box import is_running
from stoker.counters import Counters, read_counters
from stoker.facts.machine.nvidia import read_nvidia
from stoker.records import GIB, BenchLoad, BenchRun, ServiceView, Target
from verdicts_seen import checks_of, unwell, verdicts_of

MODELS = Path(__file__).parent.parent / "models" / "demo"
PYTHON = os.environ.get("STOKER_GPU_PYTHON", sys.executable)
OUT = os.environ.get("STOKER_GPU_OUT", "")
PROMPTS, PROMPT_LETTERS, NEW_TOKENS, AT_ONCE = 200, 400, 32, 8
# Two ways to one sum differ by some 1e-6 of it in float32, by 1e-3 in float16: below this two tokens are equally likely.
TIE_NATS = {"float32": 1e-3, "float16": 0.05}
CHAT: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Who are you?"}]


class Engine(NamedTuple):
    """A real engine: where it was unpacked, its version, and the words that its services need there."""

    name: str
    site: str
    version: str
    module: str
    flags: str
    more: str = ""
    number: str = "float32"
    python: str = PYTHON

    @property
    def is_here(self) -> bool:
        """Tells whether there is one to be tried."""
        return bool(self.site)

    @property
    def beside_others(self) -> Engine:
        """The engine with a small cache of a told size, for several starts at once on one card.

        SGLang takes its share of what was free when it began, and vLLM what its share leaves of all that was taken while it
        looked, by others too; where another one takes some meanwhile, little may be left.
        """
        if self.name == "sglang":
            return self._replace(more="memory_share = 0.9", flags=f"{self.flags}, max-total-tokens = 65536")
        return self._replace(flags=f"{self.flags}, kv-cache-memory-bytes = {GIB}")

    def table(self, service: str, more: str = "", flags: str = "", model: Path = MODELS / "hf") -> str:
        """Returns the table of a service."""
        environment = {
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "TRITON_F32_DEFAULT": "ieee",
            "VLLM_USE_FLASHINFER_SAMPLER": "0",
        }
        environment |= {"PYTHONPATH": self.site} if Path(self.site).is_dir() else {}
        words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        return (
            f'[service.{service}]\nmodel = "{model}"\nengine = "{self.name}"\nversion = "{self.version}"\n'
            f'program = ["{self.python}", "-m", "{self.module}"]\ncontext = 2048\nparallel = 8\n{self.more}\n'
            f"environment = {{ {words} }}\nflags = {{ {self.flags}{flags} }}\n{more}\n"
        )


SGLANG = Engine(
    "sglang", os.environ.get("STOKER_SGLANG_SITE", ""), "0.5.16", "sglang.launch_server",
    'attention-backend = "triton", sampling-backend = "pytorch", dtype = "float16"', "memory_share = 0.5", "float16",
)  # fmt: skip
VLLM = Engine(
    "vllm", os.environ.get("STOKER_VLLM_SITE", ""), os.environ.get("STOKER_VLLM_VERSION", "0.26.0"),
    "vllm.entrypoints.openai.api_server",
    os.environ.get("STOKER_VLLM_FLAGS", 'attention-backend = "TRITON_ATTN", dtype = "float32"'),
    os.environ.get("STOKER_VLLM_MORE", "memory_share = 0.1"),
)  # fmt: skip


class Said(NamedTuple):
    """What an engine said greedily; for each letter at which a token begins, how much likelier that was than the next.

    `is_whole` where the model itself ended it, before the limit.
    """

    text: str
    is_whole: bool
    gaps_nats: tuple[tuple[int, float], ...] = ()

    def gap_at(self, letter: int) -> float:
        """Returns how much likelier the token was that holds a letter of the text, or the one before it.

        Where one of two tokens begins as the other does ("set", "setting"), the texts part only in the next token.
        """
        return min([gap for begins, gap in self.gaps_nats if begins <= letter][-2:])


class GpuHome(Home):
    """A state folder with services of one engine."""

    limit_s = 300.0

    def __init__(self, folder: Path, engine: Engine, services: str, limits: str = "") -> None:
        super().__init__(folder)
        self.engine = engine
        self.leaders: set[int] = set()
        self.configure(services, limits=limits)

    def bring_up(self, name: str) -> ServiceView:
        """Brings a service up, and notes how long that took and what of."""
        began_s = time.monotonic()
        view = self.json("up", name)
        if view["pid"] not in self.leaders:  # else it was up already, and that is no start
            self.note("start", name, took_s=round(time.monotonic() - began_s, 1), stages=self.stages(name))
        self.leaders.add(view["pid"])
        return self.service(name)

    def stages(self, name: str) -> dict[str, float]:
        """Returns what the last start's time went into."""
        return {one["name"]: one["took_s"] for one in self.json("timeline", name)["last"]["stages"]}

    def note(self, what: str, name: str, **facts: object) -> None:
        """Keeps a result, whatever comes after it, where results are asked for."""
        if not OUT:
            return
        Path(OUT).mkdir(parents=True, exist_ok=True)
        line = {"engine": self.engine.name, "version": self.engine.version, "what": what, "name": name, **facts}
        with Path(OUT, "results.jsonl").open("ab", buffering=0) as file:  # in one piece: others write there too
            file.write(json.dumps(line).encode() + b"\n")

    def ask(self, path: str, **body: Any) -> dict[str, Any]:
        """Asks the gateway and returns what it answers."""
        headers = {"authorization": f"Bearer {self.daemon.key}"}
        reply = httpx.post(f"{self.daemon.url}{path}", json=body, headers=headers, timeout=120.0, trust_env=False)
        assert reply.status_code == httpx.codes.OK, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def counters(self, service: str) -> Counters:
        """Returns what the engine itself has counted."""
        key = self.paths.engine_key_file.read_text().strip()
        address, headers = self.service(service).address, {"authorization": f"Bearer {key}"}
        found = read_counters(httpx.get(f"{address}/metrics", headers=headers, trust_env=False).text)
        assert found is not None
        return found

    def target(self, service: str) -> Target:
        """Returns how a benchmark reaches a service through the gateway, and its counters past it."""
        key = self.paths.engine_key_file.read_text().strip()
        return Target(f"{self.daemon.url}/v1", service, self.daemon.key, self.service(service).address, key)

    def target_past_the_gateway(self, service: str) -> Target:
        """Returns how a benchmark reaches a service's engine itself."""
        through, address = self.target(service), self.service(service).address
        assert address is not None and through.engine_key is not None
        return msgspec.structs.replace(through, url=f"{address}/v1", key=through.engine_key)

    def measure(self, service: str, content: str) -> tuple[BenchRun, dict[str, int], tuple[int, ...]]:
        """Measures a service on one kind of text; returns the run and by how much its own counters grew meanwhile."""
        before: list[Counters] = []
        after: list[Counters] = []  # of each repeat: what is asked behind them counts too

        def look(text: str) -> None:
            if text.startswith("run") and not before:  # the warm-up is over
                before.append(self.counters(service))

        run = run_bench(
            self.target(service), prompts=(128,), new=192, loads=(BenchLoad("closed", 1),), content=content, runs=3,
            tell=look, silence_s=120.0, between=lambda cell, number: after.append(self.counters(service)),
        )  # fmt: skip
        began = before[0].by_position or (0,) * len(after[-1].by_position)
        return run, after[-1].since(before[0]), tuple(b - a for a, b in zip(began, after[-1].by_position, strict=True))

    def say_greedily(self, service: str, count: int = PROMPTS, *, with_gaps: bool = False) -> list[Said]:
        """Returns what a service says to so many beginnings of code and prose."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda prompt: self._continue(service, prompt, with_gaps), beginnings(count)))

    def _continue(self, service: str, prompt: str, with_gaps: bool) -> Said:
        more = {"logprobs": 2} if with_gaps else {}  # of drafted tokens not every engine tells
        answer = self.ask("/v1/completions", model=service, prompt=prompt, max_tokens=NEW_TOKENS, temperature=0.0, **more)
        [choice] = answer["choices"]
        is_whole = choice["finish_reason"] == "stop"
        if not with_gaps:
            return Said(choice["text"], is_whole)
        likely = [sorted(found.values(), reverse=True) for found in choice["logprobs"]["top_logprobs"]]
        gaps = [both[0] - both[1] if len(both) > 1 else math.inf for both in likely]
        ends = accumulate(len(token) for token in choice["logprobs"]["tokens"])
        return Said(choice["text"], is_whole, tuple(zip((0, *ends), gaps, strict=False)))

    def end(self) -> dict[int, str]:
        """Takes everything down; returns what was left of any engine, after killing it."""
        left = super().end() | {pid: "in the session" for leader in self.leaders for pid in family(leader)}
        for pid in left:
            psutil.Process(pid).kill()
        return left


def check_plain(home: GpuHome, *probes: str) -> dict[str, Any]:
    """Proves, verifies and measures a service without drafts by the product's own verbs; returns what verify said."""
    home.bring_up("plain")
    words = [word for probe in ("answers", "identity", "streaming", *probes) for word in ("--probe", probe)]
    report: dict[str, Any] = json.loads(home.run("verify", "plain", *words, "--json", code=None).stdout)
    verdicts = verdicts_of(report)
    home.note("verify", "plain", verdicts=verdicts, left=checks_of(report)["streaming: abort"]["says"])
    assert [verdicts[name] for name in ("answers", "identity", "streaming")] == ["pass"] * 3, unwell(report)
    run = home.json("bench", "plain", "--pp", "128", "--tg", "192", "--runs", "3", "--content", "code")
    home.note("plain", "plain", **{one["name"]: one["median"] for one in run["cells"][0]["figures"]})
    return report


def beginnings(count: int) -> list[str]:
    """Returns beginnings, code and prose by turns, no two alike."""
    texts = {kind: "\n\n".join(units_of(kind)) for kind in ("code", "prose")}
    return [
        text[(start := place * 97 % (len(text) - PROMPT_LETTERS)) : start + PROMPT_LETTERS]
        for place in range(count // 2)
        for text in texts.values()
    ]


def partings(plain: list[Said], guessed: list[Said]) -> dict[int, float]:
    """Returns where two runs say different words, and how much likelier the first one's token was there than the next."""
    pairs = enumerate(zip(plain, guessed, strict=True))
    return {place: one.gap_at(_parting(one, other)) for place, (one, other) in pairs if one.text != other.text}


def _parting(one: Said, other: Said) -> int:
    """The first letter that differs."""
    pairs = enumerate(zip(one.text, other.text, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one.text), len(other.text)))


def family(leader: int) -> set[int]:
    """Returns the living processes of an engine's session."""
    return {pid for pid in psutil.pids() if _session(pid) == leader and is_running(pid)}


def threads_of(leader: int) -> set[int]:
    """Returns the living threads of an engine's session: a process has its memory until its last one has ended."""
    pids = (pid for pid in psutil.pids() if _session(pid) == leader)
    return {int(task.name) for pid in pids for task in Path(f"/proc/{pid}/task").glob("*") if is_running(int(task.name))}


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def card_used_bytes() -> int:
    """Returns what is in use of the first GPU's memory."""
    used = read_nvidia().gpus[0].memory_used_bytes
    assert used is not None
    return used


@contextmanager
def kept(home: GpuHome) -> Iterator[GpuHome]:
    """A home whose services' logs are kept, and that leaves nothing behind."""
    try:
        yield home
    finally:
        for log in home.paths.state.glob("logs/*.log") if OUT else ():
            Path(OUT, "logs").mkdir(parents=True, exist_ok=True)
            shutil.copy(log, Path(OUT, "logs", f"{home.engine.name}-{log.name}"))
        left = home.end()
    assert left == {}
