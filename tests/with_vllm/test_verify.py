"""`stoker verify` of the real vLLM, with parsers and without, and of LiteLLM with a fallback in front of it.

A router that falls back is the published trap: vLLM without a tool parser refuses each request with tools, and the router
answers it with another model.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from home import wait_for
from stoker.config import demo_model
from stoker.facts.machine.ports import pick_free_port
from verdicts_seen import checks_of, seen, unwell, verdicts_of
from vllm_home import EAGER, MODULE, PYTHON, VllmHome, write_service

LITELLM = os.environ.get("STOKER_LITELLM", "")
PARSERS = 'enable-auto-tool-choice = true, tool-call-parser = "hermes", reasoning-parser = "deepseek_v3"'
CONFIGURATION = """
model_list:
  - {{model_name: plain, litellm_params: {{model: openai/plain, api_base: "{plain}/v1", api_key: "{key}"}}}}
  - {{model_name: lama, litellm_params: {{model: openai/lama, api_base: "{lama}/v1", api_key: "{key}"}}}}
litellm_settings: {{num_retries: 0, fallbacks: [{{plain: [lama]}}, {{lama: [plain]}}]}}
"""
pytestmark = pytest.mark.elsewhere(PYTHON != "", "vLLM, which `make test-engines` installs")


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHome]:
    """A Stoker with `plain` (vLLM without parsers), `parsing` (with them) and `lama` (llama.cpp)."""
    home = VllmHome(tmp_path_factory.mktemp("verify"))
    home.configure(
        write_service("plain", MODULE, EAGER)
        + write_service("parsing", MODULE, EAGER.replace("true }", f"true, {PARSERS} }}"))
        + f'[service.lama]\nmodel = "{demo_model()}"\ncontext = 1024\nreasoning = "off"\n'
    )
    yield home
    assert home.end() == {}


def verify(home: VllmHome, *words: str) -> dict[str, Any]:
    """Returns the report of a run that finds something to fail, or nothing."""
    view: dict[str, Any] = json.loads(home.run("verify", *words, "--json", code=None).stdout)
    assert view["in_time"]
    return view


def test_vllm_without_parsers_is_what_was_seen_and_the_flags_are_named(vllm: VllmHome) -> None:
    vllm.bring_up("plain")
    view = verify(vllm, "plain", "--deep")
    assert verdicts_of(view) == seen("vllm"), unwell(view)
    auto = checks_of(view)["tools: auto"]
    assert auto["verdict"] == "not offered"
    assert auto["mend"] == "start it with `--enable-auto-tool-choice --tool-call-parser hermes`"
    counters = checks_of(view)["identity: counters"]["says"]
    assert counters == "vllm itself counted 3 requests of 3, 18 generated tokens of 18"


@pytest.fixture
def router(vllm: VllmHome, tmp_path: Path) -> Iterator[str]:
    """LiteLLM with a fallback from vLLM to llama.cpp, and back; its address."""
    for name in ("plain", "lama"):
        vllm.bring_up(name)
    key = vllm.paths.engine_key_file.read_text().strip()
    file, port = tmp_path / "litellm.yaml", pick_free_port("127.0.0.1")
    file.write_text(CONFIGURATION.format(plain=vllm.service("plain").address, lama=vllm.service("lama").address, key=key))
    environment = {
        **os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }  # fmt: skip
    words = (LITELLM, "--config", str(file), "--host", "127.0.0.1", "--port", str(port))
    with (
        (tmp_path / "litellm.log").open("wb") as log,
        subprocess.Popen(words, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            wait_for("LiteLLM", lambda: _is_up(port), 180.0)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/liveliness", trust_env=False).is_success
    except httpx.HTTPError:
        return False


@pytest.mark.elsewhere(LITELLM != "", "LiteLLM, which `make test-engines` installs")
def test_a_fallback_of_litellm_is_found_and_its_cause_and_the_flags_that_mend_it_are_named(
    vllm: VllmHome, router: str
) -> None:
    engine = ("--engine", str(vllm.service("plain").address), "--engine-key-file", str(vllm.paths.engine_key_file))
    view = verify(vllm, "--url", router, "--model", "plain", *engine, "--probe", "identity", "--probe", "failover")
    checks = checks_of(view)
    assert checks["identity: counters"]["verdict"] == "pass", "plain questions go to the model that was asked"
    found = checks["failover: tool choice"]
    assert found["verdict"] == "fail"
    assert found["says"].startswith("these 3 requests of 3 were answered by the other model")
    assert str(vllm.service("lama").address) in found["says"]
    assert 'because the first returned HTTP 400: "auto" tool choice requires' in found["says"]
    assert found["mend"].startswith(
        "start it with `--enable-auto-tool-choice --tool-call-parser hermes`; and take the fallbacks"
    )
    assert checks["failover: bad parameter"]["verdict"] == "fail"
    passed = {name for name, one in checks.items() if name.startswith("failover") and one["verdict"] == "pass"}
    # LiteLLM's millisecond is over before the engine is asked on one machine, and on another it is not: then it falls back.
    assert passed - {"failover: time out"} == {"failover: over long", "failover: server error"}, unwell(view)
    late = checks["failover: time out"]
    assert late["verdict"] == "pass" or "answered by the other model" in late["says"], late["says"]


@pytest.mark.elsewhere(LITELLM != "", "LiteLLM, which `make test-engines` installs")
def test_a_fallback_after_an_error_of_the_server_is_found(vllm: VllmHome, router: str) -> None:
    engine = ("--engine", str(vllm.service("lama").address), "--engine-key-file", str(vllm.paths.engine_key_file))
    view = verify(vllm, "--url", router, "--model", "lama", *engine, "--probe", "failover")
    found = checks_of(view)["failover: server error"]
    assert found["verdict"] == "fail", unwell(view)
    assert "under the name plain, because the first returned HTTP 500: Failed to parse tool call" in found["says"]


@pytest.mark.elsewhere(LITELLM != "", "LiteLLM, which `make test-engines` installs")
def test_without_the_engines_address_the_routers_headers_still_tell(vllm: VllmHome, router: str) -> None:
    view = verify(vllm, "--url", router, "--model", "plain", "--probe", "failover")
    found = checks_of(view)["failover: tool choice"]
    assert found["verdict"] == "fail"
    assert "3 fallback(s)" in found["says"] and "lama" in found["says"]


def test_vllm_with_parsers_is_what_was_seen(vllm: VllmHome) -> None:
    for name in ("plain", "lama"):
        vllm.run("down", name, code=None)
    vllm.bring_up("parsing")
    view = verify(vllm, "parsing", "--deep", "--require", "tools")
    assert verdicts_of(view) == seen("vllm-with-parsers"), unwell(view)
    checks = checks_of(view)
    assert checks["tools: one by name"]["says"] == 'it calls get_time({"city": "Paris"})'
    assert checks["reasoning: place"]["says"].startswith("it arrives in `reasoning`")
