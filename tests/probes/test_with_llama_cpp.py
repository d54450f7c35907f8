"""The real llama.cpp with the demo model: what `stoker verify` says of it is what was seen of it by hand."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

from embedded_engine import ALIAS, embedded_engine
from home import Home
from probing import found, prove_target
from stoker.config import Paths
from stoker.probes.kit.prover import Prober
from stoker.records import Endpoint, Target, Verdict
from verdicts_seen import checks_of, seen, unwell, verdicts_of


def test_the_demo_through_the_gateway_is_what_was_seen(demo: Home) -> None:
    view = json.loads(demo.run("verify", "demo", "--deep", "--json", code=1).stdout)
    checks = checks_of(view)
    assert verdicts_of(view) == seen("llamacpp"), unwell(view)
    assert (view["engine"], view["in_time"]) == ("llamacpp", True)
    assert "llamacpp itself counted 18 generated tokens of 18" in checks["identity: counters"]["says"]
    assert checks["tools: auto"]["says"] == 'it calls get_weather({"city": "Paris"})'
    assert "get_time was named" in checks["tools: one by name"]["says"]
    assert checks["tools: required"]["verdict"] == "fail"
    assert "HTTP 500" in checks["failover: server error"]["says"], "else it tempts nobody"
    assert keys(demo.paths).isdisjoint(json.dumps(view).split('"'))


def test_what_the_engine_does_not_enforce_is_said_of_this_engine_and_why_the_service_is_ready_all_the_same(
    demo: Home,
) -> None:
    said = demo.run("verify", "demo", "--probe", "tools", code=1).stdout
    assert "llama.cpp itself does not hold this model to it" in said.replace("\n" + " " * 19, " ")
    assert "vLLM" not in said
    assert "demo goes on serving" in said
    assert "its gate asked what every client relies on" in " ".join(said.split())


def keys(paths: Paths) -> set[str]:
    """Returns all keys of a home."""
    return {file.read_text().strip() for file in (paths.key_file, paths.engine_key_file, paths.control_key_file)}


def test_the_only_service_needs_no_name(demo: Home) -> None:
    said = demo.run("verify", "--probe", "answers", "--probe", "exposure").stdout
    assert said.startswith("stoker-demo at http://127.0.0.1:")


def test_a_service_that_is_not_there_is_refused_with_those_that_are(demo: Home) -> None:
    assert "services here: demo (READY)" in demo.run("verify", "nothing", code=3).stderr


def test_what_it_provokes_is_no_finding_of_a_diagnosis(home: Home) -> None:
    home.run("up")  # one of its own: other tests ask the shared one for too much, as clients may
    home.run("verify", "--probe", "limits")
    log = home.paths.engine_log("demo").read_text()
    assert "exceeds the available context size" in log, "else there was nothing to be found"
    assert "prompt-beyond-context" not in [one["rule"] for one in home.json("diagnose", "demo")["findings"]]


def test_one_question_after_another_is_answered_though_the_engine_closes_its_connections(demo: Home) -> None:
    view = demo.service("demo")
    assert view.address is not None
    address = urlsplit(view.address)
    endpoint = Endpoint("demo", view.model, "main", "a-plan", str(address.hostname), address.port or 0)

    async def ask() -> int:
        prober = Prober(demo.paths.engine_key_file.read_text().strip())
        try:
            return sum([(await prober.prove(endpoint)).tokens > 0 for _ in range(200)])
        finally:
            await prober.close()

    assert asyncio.run(ask()) == 200


def test_the_engine_itself_is_more_lenient_than_the_gateway(demo: Home) -> None:
    engine = demo.service("demo").address
    words = ("--model", "stoker-demo", "--key-file", str(demo.paths.engine_key_file), "--probe", "identity", "--json")
    checks = checks_of(demo.json("verify", "--url", str(engine), *words[:-1]))
    assert checks["identity: strange name"]["verdict"] == "degraded"
    assert checks["identity: counters"]["verdict"] == "pass"


def test_an_engine_that_embeds_gives_vectors_that_pass() -> None:
    with embedded_engine("--embeddings", "--pooling", "mean") as url:
        checks = found(prove_target(Target(f"{url}/v1", ALIAS), "embeddings"))
    assert {name: one[0] for name, one in checks.items()} == {
        "embeddings: vectors": Verdict.PASS, "embeddings: same twice": Verdict.PASS,
    }, checks  # fmt: skip
