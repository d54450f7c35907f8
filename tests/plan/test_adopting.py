"""What is made of an engine that somebody else started, by the words it was called with."""

from __future__ import annotations

import pytest

from stoker.errors import Refused
from stoker.launch.keys import read_key
from stoker.plan.adopting import Found, check_speaks_plainly, choose_port, plan_adopted, recognise, served_name
from stoker.records import GIB, AdoptedProcess, AdoptWish, Listener, Recipe
from support import fails

VLLM = ("/opt/venv/bin/python3", "-u", "/opt/venv/bin/vllm", "serve", "org/model", "--port", "9000")
PROCESS = AdoptedProcess(100, 5, "boot", ((100, 5),), "/srv")


def known(*words: str) -> Recipe:
    found = recognise(words, {}, "pid 100")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("words", "engine", "model"),
    [
        (VLLM, "vllm", "org/model"),
        (("python3", "-m", "sglang.launch_server", "--model-path", "/m"), "sglang", "/m"),
        (("/usr/bin/python3.12", "-m", "vllm.entrypoints.openai.api_server", "--model", "org/model"), "vllm", "org/model"),
        (("./llama-server", "-m", "x.gguf"), "llamacpp", "x.gguf"),
        (("python", "-P", "-m", "stoker.embedded", "--model", "x.gguf"), "llamacpp", "x.gguf"),
    ],
)
def test_an_engine_is_known_as_the_kernel_shows_it(words: tuple[str, ...], engine: str, model: str) -> None:
    assert (known(*words).engine, known(*words).model) == (engine, model)


@pytest.mark.parametrize(
    "words",
    [(), ("VLLM::EngineCore",), ("bash", "-c", "vllm serve org/model"), ("python3", "train.py"), ("docker", "run", "vllm")],
)
def test_what_is_no_engine_itself_is_not_taken_for_one(words: tuple[str, ...]) -> None:
    assert recognise(words, {}, "pid 100") is None


def listening(*places: tuple[str, int]) -> list[Listener]:
    return [Listener(host, port, 100, "vllm") for host, port in places]


@pytest.mark.parametrize(
    ("asked", "usual", "places", "port"),
    [
        (None, 8000, [("127.0.0.1", 9000), ("127.0.0.1", 41234)], 9000),  # as its words say
        (9001, 8000, [("0.0.0.0", 9000), ("0.0.0.0", 9001)], 9001),
        (None, 8000, [], 9000),  # it still loads
        (None, 8000, [("::", 41234)], 41234),  # the only one
    ],
)
def test_the_port_is_the_one_that_it_answers_on(
    asked: int | None, usual: int, places: list[tuple[str, int]], port: int
) -> None:
    assert choose_port(known(*VLLM), asked, usual, listening(*places)) == port


@pytest.mark.parametrize(
    ("asked", "places", "parts"),
    [
        (None, [("10.0.0.5", 9000)], ["listens on 10.0.0.5, port 9000", "--host 127.0.0.1"]),
        (None, [("127.0.0.1", 1), ("127.0.0.1", 2)], ["it listens on 1, 2", "--port PORT"]),
        (77, [("127.0.0.1", 9000)], ["nobody knows on which port"]),
    ],
)
def test_a_port_that_is_a_guess_is_refused(asked: int | None, places: list[tuple[str, int]], parts: list[str]) -> None:
    with fails(Refused, *parts):
        choose_port(known(*VLLM), asked, 8000, listening(*places))


def test_the_models_name_is_what_the_engine_says_before_what_its_words_say() -> None:
    recipe = known(*VLLM, "--served-model-name", "coder", "other")
    assert served_name(recipe, ["told"]) == "told"
    assert served_name(recipe, []) == "coder"
    assert served_name(known(*VLLM), []) == "org/model"
    assert served_name(known("llama-server", "-m", "x.gguf", "--alias", "a,b"), []) == "a"


@pytest.mark.parametrize("words", [("--ssl-keyfile", "/k"), ("--uds", "/run/x.sock")])
def test_what_the_gateway_cannot_speak_is_refused(words: tuple[str, ...]) -> None:
    with fails(Refused, words[0], "127.0.0.1"):
        check_speaks_plainly(known(*VLLM, *words))


@pytest.mark.parametrize(
    ("words", "variables", "key"),
    [
        ((), (), None),
        (("--api-key", "one"), (), "one"),
        (("--api_key=one",), ("VLLM_API_KEY=two",), "one"),
        ((), ("PATH=/bin", "LLAMA_API_KEY=two"), "two"),
        (("--api-key", "one,two"), (), "one"),
        (("--api-key",), (), None),
    ],
)
def test_an_engines_own_key_is_found(words: tuple[str, ...], variables: tuple[str, ...], key: str | None) -> None:
    assert read_key(words, variables) == key


def found(environment: dict[str, str] | None = None, words: tuple[str, ...] = VLLM) -> Found:
    return Found(PROCESS, words, environment or {}, 9000, "org/Model-8B", "", "unknown", 3 * GIB)


def test_a_plan_keeps_what_was_found_and_no_secret() -> None:
    variables = {"VLLM_USE_V1": "1", "HF_TOKEN": "hf_abcdefghijklmnopqrstuv", "EDITOR": "vi", "PATH": "/bin"}
    plan = plan_adopted(AdoptWish(100, restart=True), known(*VLLM), found(variables))
    assert (plan.service, plan.model, plan.port, plan.adopted) == ("model-8b", "org/Model-8B", 9000, PROCESS)
    assert [one.name for one in plan.settings] == ["$PATH", "$VLLM_USE_V1"]
    assert (plan.memory_need_bytes, plan.memory_because) == (3 * GIB, "what it held when it was adopted")


def test_what_its_owner_declares_counts_where_it_is_more() -> None:
    plan = plan_adopted(AdoptWish(100, name="big", claim_gib=70.0), known(*VLLM), found())
    assert (plan.service, plan.memory_need_bytes, plan.memory_because) == ("big", 70 * GIB, "declared")
    assert plan.settings == ()
    with fails(Refused, "`claim_gib` is -1"):
        plan_adopted(AdoptWish(100, claim_gib=-1), known(*VLLM), found())
    with fails(Refused, "cannot be a service's name"):
        plan_adopted(AdoptWish(100, name="../x"), known(*VLLM), found())
