"""The demo model's EAGLE and EAGLE-3 heads in the real vLLM on the processor: the same words, and figures as it counts.

Its streams tell steps as SGLang's do, and its counters tell places, which SGLang's do not: one is held against the other.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from gpu_drafts import check_measured_as_counted, check_same_words
from gpu_home import MODELS, Engine, GpuHome, Said, beginnings, kept
from home import wait_for
from stoker.bench.events import Stream, read_stream
from stoker.bench.exchange import Piece
from stoker.bench.steps import JOINED, accepted_by_steps, step_tokens
from stoker.counters import Counters
from vllm_home import PYTHON

PROMPTS, STREAMS, NEW, DRAFTS = 40, 12, 48, 4
VLLM = Engine(
    "vllm", PYTHON, "0.32.0", "vllm.entrypoints.openai.api_server", 'enforce-eager = true, dtype = "float32"', python=PYTHON
)
HEADS = ("eagle", "eagle3")
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with a service for each head and one without, one of which runs at a time."""
    tables = [VLLM.table("plain")]
    tables += [
        VLLM.table(kind, f'speculation = "{kind}"\ndraft = "{MODELS}/hf-{kind}"\ndraft_tokens = {DRAFTS}') for kind in HEADS
    ]
    with kept(GpuHome(tmp_path_factory.mktemp("heads"), VLLM, "".join(tables))) as home:
        yield home


@pytest.fixture(scope="module")
def plain(home: GpuHome) -> list[Said]:
    """What the model says without drafts."""
    home.bring_up("plain")
    said = home.say_greedily("plain", PROMPTS, with_gaps=True)
    home.run("down")
    return said


@pytest.mark.parametrize("head", HEADS)
def test_a_head_says_the_same_and_is_measured_as_vllm_counts_itself(home: GpuHome, plain: list[Said], head: str) -> None:
    home.bring_up(head)
    check_measured_as_counted(home, head)
    check_same_words(home, head, plain, home.say_greedily(head, PROMPTS))
    check_streams_tell_what_is_counted(home, head)
    home.run("down")


def check_streams_tell_what_is_counted(home: GpuHome, service: str) -> None:
    """Fails where the steps that streams tell accepted others than the engine counted, but for each answer's last step."""
    before = home.counters(service)
    streams = [ask_as_stream(home, service, text) for text in beginnings(STREAMS)]
    after = wait_for("its counters", lambda: counters_with(home, service, before, STREAMS * NEW))
    steps = after.since(before)["drafts_total"]
    joined = steps - sum(len(step_tokens(one)) for one in streams)
    assert 0 <= joined <= JOINED * steps
    accepted = accepted_by_steps(streams, steps, DRAFTS)
    assert max(accepted) == DRAFTS == len(after.by_position)
    for place, (then, now) in enumerate(zip(before.by_position, after.by_position, strict=True)):
        seen = sum(one > place for one in accepted)
        assert seen - joined <= now - then <= seen + STREAMS + joined


def counters_with(home: GpuHome, service: str, before: Counters, tokens: int) -> Counters | None:
    """Returns the counters once so many tokens are in them: they follow an answer a little later."""
    now = home.counters(service)
    return now if now.since(before)["generated_tokens_total"] >= tokens else None


def ask_as_stream(home: GpuHome, service: str, text: str) -> Stream:
    """Returns a chat's stream, which says in each chunk how many tokens there were until then."""
    key = home.paths.engine_key_file.read_text().strip()
    body = {
        "model": service, "messages": [{"role": "user", "content": text}], "max_tokens": NEW, "temperature": 0.0,
        "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }  # fmt: skip
    url, headers = f"{home.service(service).address}/v1/chat/completions", {"authorization": f"Bearer {key}"}
    reply = httpx.post(url, json=body, headers=headers, timeout=120.0, trust_env=False)
    return read_stream([Piece(0.0, reply.content)])
