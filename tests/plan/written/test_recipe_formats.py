"""Single traps of the recipe formats, one small file each."""

from __future__ import annotations

import json

import pytest

from stoker.plan.written import eugr, litellm, llama_swap, nvidia, sparkrun, vllm_recipes
from stoker.plan.written.words import flags_of
from stoker.records import Recipe


def spark(**keys: object) -> Recipe:
    """Returns what is read of a sparkrun recipe with these keys."""
    whole = {"model": "a/b", "container": "c/d:1", "command": "vllm serve {model}", **keys}
    [recipe] = sparkrun.read(json.dumps(whole), "folder/tiny.yaml")
    return recipe


def swap(**models: object) -> tuple[Recipe, ...]:
    """Returns what is read of a llama-swap configuration with these models."""
    return llama_swap.read(json.dumps({"models": models}), "f")


def proxy(**keys: object) -> tuple[Recipe, ...]:
    """Returns what is read of a LiteLLM configuration with one engine and these keys."""
    entry = {"model_name": "a", "litellm_params": {"model": "hosted_vllm/a", "api_base": "http://x/v1"}}
    return litellm.read(json.dumps({"model_list": [entry], **keys}), "f")


def vllm_recipe(variant: dict[str, object], **keys: object) -> Recipe:
    """Returns what is read of a recipe of the vLLM project with this default variant."""
    meta = {"title": "Tiny", "hardware": {"dgx_spark_gb10": "verified"}}
    whole = {"meta": meta, "model": {"model_id": "a/b"}, "variants": {"default": variant}, **keys}
    [recipe] = vllm_recipes.read(json.dumps(whole), "f")
    return recipe


def test_sparkruns_container_is_what_its_executor_does() -> None:
    assert spark().container == {
        "rm": (), "privileged": (), "gpus": ("all",), "ipc": ("host",), "shm-size": ("10.24gb",), "network": ("host",),
    }  # fmt: skip


def test_a_sparkrun_recipe_changes_its_executor_key_by_key() -> None:
    container = spark(
        executor_config={"privileged": False, "network": "bridge", "cap_add": ["SYS_NICE", "IPC_LOCK"]}
    ).container
    assert "privileged" not in container
    assert container["network"] == ("bridge",)
    assert container["cap-add"] == ("SYS_NICE", "IPC_LOCK")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"min_nodes": 4}, "4 machines with one GPU each"),
        ({"defaults": {"tensor_parallel": 2, "pipeline_parallel": 2}}, "4 machines with one GPU each"),
        ({"cluster_only": True}, "several machines"),
        ({"mode": "cluster"}, "several machines"),
        ({"max_nodes": 1}, None),
        ({"defaults": {"tensor_parallel": "many"}}, None),
    ],
)
def test_a_recipe_for_several_machines_is_told(keys: dict[str, object], says: str | None) -> None:
    told = [sentence for sentence in spark(**keys).unknown if sentence.startswith("it is written for")]
    assert told == ([f"it is written for {says}: this is the part of one of them"] if says else [])


@pytest.mark.parametrize(
    "key", ["pre_exec", "post_exec", "post_commands", "builder", "include", "overrides", "runtime_config"]
)
def test_what_sparkrun_does_beside_the_launch_is_told(key: str) -> None:
    assert any(sentence.startswith(f"`{key}` ") for sentence in spark(**{key: ["x"]}).unknown)
    assert spark(**{key: []}).unknown == ()


def test_a_recipe_is_named_after_its_file_whatever_it_calls_itself() -> None:
    assert spark(name="other").name == "tiny"


def test_a_default_that_is_a_list_is_left_out_and_told() -> None:
    recipe = spark(defaults={"sizes": [1, 2]}, command="vllm serve {model} --sizes {sizes}")
    assert recipe.words[-1] == "{sizes}"
    assert "`defaults.sizes` should be one value, and is not" in recipe.unknown


@pytest.mark.parametrize(
    ("runtime", "words"),
    [
        ("vllm-ray", ("a/b", "--tensor-parallel-size", "1", "--max-model-len", "8", "--enforce-eager")),
        ("sglang", ("--model-path", "a/b", "--tp-size", "1", "--context-length", "8", "--enforce-eager")),
        ("llama-cpp", ("-hf", "a/b", "--tensor-parallel", "1", "--ctx-size", "8", "--enforce-eager")),
    ],
)
def test_a_command_that_sparkrun_would_make_is_guessed_for_its_runtime(runtime: str, words: tuple[str, ...]) -> None:
    defaults = {"tensor_parallel": 1, "max_model_len": 8, "enforce_eager": True, "no": False}
    recipe = spark(runtime=runtime, command=None, defaults=defaults)
    assert recipe.words == words
    assert recipe.unknown[0].startswith("no `command` is written")


def test_a_value_with_a_quote_stays_one_word() -> None:
    assert spark(command=None, defaults={"note": "it's; rm -rf /"}).words[-1] == "it's; rm -rf /"


def test_ports_of_llama_swap_go_by_name_and_not_by_place() -> None:
    command = {"cmd": "llama-server --port ${PORT} -m x.gguf"}
    found = swap(c=command, a=command, b={"cmd": "x"})
    assert [(recipe.name, flags_of(recipe.words).get("--port")) for recipe in found] == [
        ("c", ("5801",)), ("a", ("5800",)), ("b", None),
    ]  # fmt: skip


def test_llama_swaps_switches_are_printed_as_go_does() -> None:
    [recipe] = swap(a={"cmd": "llama-server -m x --a ${yes} --port 1", "proxy": "http://x:1", "macros": {"yes": True}})
    assert flags_of(recipe.words)["--a"] == ("true",)


def test_a_comment_in_a_command_of_llama_swap_is_no_word() -> None:
    [recipe] = swap(a={"cmd": "llama-server\n  # -m old.gguf\n  -m new.gguf \\\n  --port 1", "proxy": "http://x:1"})
    assert recipe.words == ("-m", "new.gguf", "--port", "1")
    assert recipe.unknown == ()


def test_quotes_that_do_not_pair_are_told() -> None:
    [recipe] = swap(a={"cmd": "llama-server -m 'x --port 1", "proxy": "http://x:1"})
    assert recipe.engine == "llamacpp"
    assert any("cannot be split into words" in sentence for sentence in recipe.unknown)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("${KEY}", "is written as in a shell"),
        ("0123456789abcdef0123", "stands in the file as plain text"),
        ("os.environ/KEY", None),
        ("<your key>", None),
        ("none", None),
    ],
)
def test_a_key_of_litellm_is_looked_at_and_never_shown(value: str, says: str | None) -> None:
    [recipe] = proxy(general_settings={"master_key": value})
    told = [sentence for sentence in recipe.unknown if "master_key" in sentence]
    assert [says in sentence for sentence in told if says] == ([True] if says else [])
    assert len(told) == bool(says)
    assert not any("0123456789" in sentence for sentence in recipe.unknown)


@pytest.mark.parametrize("section", ["router_settings", "litellm_settings"])
@pytest.mark.parametrize("key", ["fallbacks", "context_window_fallbacks", "content_policy_fallbacks"])
def test_a_fallback_is_found_wherever_litellm_allows_it(section: str, key: str) -> None:
    [recipe] = proxy(**{section: {key: [{"a": ["gone"]}]}})
    assert "a request for `a` falls back to `gone`, which `model_list` does not have" in recipe.unknown


def test_an_address_that_is_none_is_no_traceback() -> None:
    entry = {"model_name": "a", "litellm_params": {"model": "openai/a", "api_base": "http://[::1"}}
    [recipe] = litellm.read(json.dumps({"model_list": [entry]}), "f")
    assert "`api_base` is http://[::1; an engine's address ends in /v1" in recipe.unknown


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("x:1", "x:1"),
        ({"nvidia": "x:1", "amd": "y"}, "x:1"),
        ({"nvidia": {"cu129": "x:1", "cu130": "x:2"}}, "x:2"),
        ({"cu130": "x:2", "cu129": "x:1"}, "x:2"),
        ({"amd": "y"}, None),
        ({"nvidia": ["x"]}, None),
    ],
)
def test_an_image_is_chosen_by_brand_and_cuda(image: object, found: str | None) -> None:
    assert vllm_recipe({}, model={"model_id": "a/b", "docker_image": image}).image == found


def test_the_same_flag_later_wins() -> None:
    model = {"model_id": "a/b", "base_args": ["--x", "1", "--y", "--z=2"]}
    recipe = vllm_recipe({"extra_args": ["--x", "3", "--z=4"]}, model=model)
    assert recipe.words == ("a/b", "--y", "--x", "3", "--z=4")


def test_outside_of_variants_the_most_exact_block_alone_counts() -> None:
    overrides = {"nvidia": {"extra_args": ["--n"]}, "blackwell": {"extra_args": ["--b"], "extra_env": {"B": 1}}}
    recipe = vllm_recipe({"hardware_overrides": overrides}, hardware_overrides=overrides)
    assert recipe.words == ("a/b", "--n", "--b")
    assert vllm_recipe({}, hardware_overrides=overrides).words == ("a/b", "--b")
    assert recipe.environment == {"B": "1"}


def test_nvidias_setup_may_be_missing_where_nothing_is_set_up() -> None:
    text = "schema_version: 4\nhardware: dgx-spark\nruntime: null\nserve: {command: FAST=1 vllm serve a/b --port 1}\n"
    [recipe] = nvidia.read(text, "folder/recipe.yaml")
    assert (recipe.name, recipe.image, recipe.environment) == ("recipe", None, {"FAST": "1"})
    assert recipe.unknown == ()


def test_another_image_than_the_one_that_is_started_is_told() -> None:
    runtime = {"image": "x:1", "setup_command": "docker run -it --entrypoint /bin/bash vllm/vllm-openai:v2"}
    whole = {"schema_version": 3, "hardware": "dgx-spark", "runtime": runtime, "serve": {"command": "vllm serve a/b"}}
    [recipe] = nvidia.read(json.dumps(whole), "f")
    assert recipe.image == "vllm/vllm-openai:v2"
    assert "`runtime.image` is x:1, and the setup starts vllm/vllm-openai:v2" in recipe.unknown


@pytest.mark.parametrize(
    ("flags", "backend"), [({"solo_only": True}, None), ({"cluster_only": True}, ("ray",)), ({}, ("ray",))]
)
def test_eugrs_runner_cuts_the_distributed_backend_on_one_machine(
    flags: dict[str, object], backend: tuple[str, ...] | None
) -> None:
    command = "vllm serve a/b --distributed-executor-backend ray --port 1"
    whole = {"recipe_version": "1", "name": "a", "container": "c", "command": command, **flags}
    [recipe] = eugr.read(json.dumps(whole), "f")
    assert flags_of(recipe.words).get("--distributed-executor-backend") == backend
    assert flags_of(recipe.words)["--port"] == ("1",)
    assert any("its runner cuts" in sentence for sentence in recipe.unknown) == (not flags)
