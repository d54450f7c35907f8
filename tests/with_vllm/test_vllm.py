"""The real vLLM 0.32.0 on the processor: started, proved, taken back, found again and ended.

One engine is shared: a start takes half a minute. Each test takes it as READY and may leave it in any state.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import openai
import pytest

from home import wait_for
from stoker.config import read_config
from stoker.records import ServiceView, State
from vllm_home import DEMO, HELLO, PYTHON, VllmHome, family, shared_segments

pytestmark = pytest.mark.elsewhere(PYTHON != "", "vLLM, which `make test-engines` installs")


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHome]:
    """A Stoker with services of vLLM, none of them started; fails where it leaves any process behind."""
    home = VllmHome(tmp_path_factory.mktemp("vllm"))
    yield home
    assert home.end() == {}


@pytest.fixture
def ready(vllm: VllmHome) -> ServiceView:
    """The service `small`, READY."""
    vllm.bring_up("small")
    return vllm.service("small")


def leader_of(view: ServiceView) -> int:
    """Returns the pid of a service's engine."""
    assert view.pid is not None
    return view.pid


def test_a_flag_that_this_version_lacks_is_refused_before_anything_starts_and_the_nearest_is_named(vllm: VllmHome) -> None:
    said = vllm.run("plan", "typo", code=3).stdout
    assert "vllm 0.32.0+cpu does not know --max-model-length" in said
    assert "write --max-model-len" in said
    [remembered] = (vllm.paths.state / "flags").iterdir()
    assert "--help=all" in remembered.read_text().partition("\n")[0]
    asked_at = remembered.stat().st_mtime_ns
    assert "write --max-model-len" in vllm.run("up", "typo", code=3).stderr
    assert remembered.stat().st_mtime_ns == asked_at
    assert vllm.json("status")["services"] == []


def test_what_it_takes_on_a_processor_is_planned_without_a_gpus_words(vllm: VllmHome) -> None:
    words = vllm.run("plan", "small", "--render", "argv").stdout.split()
    assert words[words.index("--model") + 1] == str(DEMO)
    assert int(words[words.index("--kv-cache-memory-bytes") + 1]) > 0
    assert not [word for word in words if "gpu" in word or "cudagraph" in word]


def test_up_ends_in_ready_and_the_engine_serves_the_folder_that_was_asked_for(vllm: VllmHome, ready: ServiceView) -> None:
    assert ready.state is State.READY
    assert ready.why.startswith("small answered")
    assert "its gate passed in" in ready.why
    assert ready.engine_version == "0.32.0+cpu"
    [served] = json.loads(vllm.ask_engine(ready, "/v1/models"))["data"]
    assert (served["id"], served["root"]) == ("small", str(DEMO))
    # Its processes are what the memory is counted for: server, tracker, engine core, worker.
    assert len(family(leader_of(ready))) == 4
    assert ready.memory_bytes is not None and ready.memory_need_bytes is not None
    assert ready.memory_bytes < ready.memory_need_bytes


def test_a_chat_through_the_gateway_names_the_model_that_answered(vllm: VllmHome, ready: ServiceView) -> None:
    with vllm.openai() as client:
        raw = client.chat.completions.with_raw_response.create(model="small", messages=HELLO, max_tokens=16, temperature=0)
    assert raw.headers["server"] == "uvicorn"  # by which the gateway knows that it may open connections ahead
    answer = raw.parse()
    assert answer.choices[0].message.content
    assert answer.usage is not None and answer.usage.completion_tokens > 1
    assert (raw.headers["x-stoker-service"], raw.headers["x-stoker-model"]) == ("small", "small")
    assert raw.headers["x-stoker-plan"] == ready.plan_id
    [told] = [one for one in vllm.json("status")["services"] if one["name"] == "small"]
    assert (told["state"], told["pid"]) == ("READY", ready.pid)


def test_a_new_daemon_takes_a_ready_engine_back(vllm: VllmHome, ready: ServiceView) -> None:
    before = family(leader_of(ready))
    vllm.kill_daemon()
    again = vllm.bring_up("small")
    assert (again["state"], again["pid"]) == ("READY", ready.pid)
    assert family(leader_of(ready)) == before


def test_a_client_is_told_when_the_engine_dies_under_its_stream_and_the_engine_comes_back(
    vllm: VllmHome, ready: ServiceView
) -> None:
    with vllm.openai() as client:
        stream = client.chat.completions.create(
            model="small", messages=HELLO, stream=True, max_tokens=900, extra_body={"ignore_eos": True}
        )
        next(iter(stream))
        os.kill(leader_of(ready), signal.SIGKILL)
        with pytest.raises(openai.APIError, match="The engine of small broke the connection"):
            list(stream)
    vllm.await_state("small", State.BACKOFF)
    assert family(leader_of(ready)) == set()
    again = vllm.await_state("small", State.READY)
    assert (again.restarts, again.pid == ready.pid) == (1, False)
    vllm.leaders.add(leader_of(again))


def test_an_engine_core_whose_server_died_unattended_is_ended_before_the_next_start(
    vllm: VllmHome, ready: ServiceView
) -> None:
    leader = leader_of(ready)
    vllm.kill_daemon()
    segments = shared_segments(leader)
    os.kill(leader, signal.SIGKILL)
    wait_for("the server's end", lambda: leader not in family(leader))
    assert family(leader), "an engine core that ends by itself needs no test"
    again = vllm.bring_up("small")
    assert again["pid"] != leader
    assert family(leader) == set()
    assert segments and not [file for file in segments if file.exists()]


def test_down_leaves_no_process_and_no_shared_memory(vllm: VllmHome, ready: ServiceView) -> None:
    segments = shared_segments(leader_of(ready))
    assert segments
    [stopped] = vllm.json("down", "small")
    assert (stopped["state"], stopped["memory_bytes"]) == ("STOPPED", None)
    assert family(leader_of(ready)) == set()
    assert not [file for file in segments if file.exists()]
    told = vllm.json("diagnose", "small")
    assert (told["ready"], told["stopped"]) == (True, True)
    assert told["findings"] == []  # though vLLM's server, which does not wait for its engine, may say that it died


def test_a_switch_to_llama_cpp_and_back_leaves_one_engine_at_a_time_and_timelines(
    vllm: VllmHome, ready: ServiceView
) -> None:
    refused = vllm.run("up", "other", code=3).stderr
    assert "small is up, and of the group `one`" in refused
    assert vllm.json("switch", "other")["outcome"] == "ready"
    assert family(leader_of(ready)) == set()
    assert vllm.json("ask", "Who are you?", "--model", "other", "--max-tokens", "4")["answer"]
    assert vllm.json("switch", "small")["outcome"] == "ready"
    vllm.leaders.add(leader_of(vllm.service("small")))
    assert vllm.service("other").state is State.STOPPED
    stages = {one["name"]: one["took_s"] for one in vllm.json("timeline", "small")["last"]["stages"]}
    assert {"import", "weights"} <= stages.keys()
    assert stages["import"] > 0.5, "vLLM imports torch"
    vllm.run("down", "small")


def test_killed_while_it_loads_it_fails_with_the_cause_and_the_next_start_speculates(vllm: VllmHome) -> None:
    vllm.run("plan", "guessing")  # the command `vllm` is asked for its flags too, which takes a while
    vllm.daemon.up(read_config(vllm.paths.config).services["guessing"])
    leader = leader_of(vllm.await_state("guessing", State.LOADING))
    vllm.leaders.add(leader)
    wait_for("an engine core", lambda: len(family(leader)) > 2)
    os.kill(leader, signal.SIGKILL)
    failed = vllm.await_state("guessing", State.FAILED)
    assert "the engine ended (killed by SIGKILL)" in failed.why
    assert family(leader) == set()
    assert vllm.bring_up("guessing")["state"] == "READY"
    with vllm.openai() as client:
        client.chat.completions.create(
            model="guessing", messages=HELLO, max_tokens=200, temperature=0, extra_body={"ignore_eos": True}
        )
    metrics = vllm.ask_engine(vllm.service("guessing"), "/metrics")
    drafted = [line for line in metrics.splitlines() if line.startswith("vllm:spec_decode_num_draft_tokens_total")]
    assert sum(float(line.split()[-1]) for line in drafted) > 0
    vllm.run("down", "guessing")


def test_tools_that_are_required_of_a_server_without_a_parser_keep_it_from_being_ready(vllm: VllmHome) -> None:
    said = vllm.run("up", "strict", code=1).stderr
    assert "it did not pass its gate: tools (auto) says: required, and not offered: HTTP 400" in said
    assert "to mend it: start it with `--enable-auto-tool-choice --tool-call-parser hermes`" in said
    assert vllm.service("strict").state is State.FAILED
    assert "strict" not in {marker.split("/")[1] for marker in vllm.engines().values()}
    kept = json.loads(vllm.run("verify", "--last", "strict", "--json", code=1).stdout)
    assert kept["engine_version"] == "0.32.0+cpu"
    verdicts = {probe["name"]: probe["verdict"] for probe in kept["verification"]["probes"]}
    assert verdicts == {"answers": "pass", "identity": "pass", "streaming": "pass", "tools": "fail"}
