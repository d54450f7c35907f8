"""Launches of others as services of stoker.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.config import Config, parse_config
from stoker.flows.importing import newest_catalog
from stoker.plan.importing import Imported, render_services, services_of
from stoker.records import Recipe, Wish

CATALOGS = {engine: catalog for engine in ("vllm", "sglang", "llamacpp") if (catalog := newest_catalog(engine))}
TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyz"


def launch(*words: str, engine: str = "vllm", **facts: Any) -> Recipe:
    """Returns a launch as a file's reader gives it."""
    program = {"vllm": ("vllm", "serve"), "sglang": ("sglang", "serve"), "llamacpp": ("llama-server",)}.get(
        engine, (engine,)
    )
    return msgspec.structs.replace(
        Recipe(kind="recipe", name="Tiny", engine=engine, program=program, words=words, model="example/Tiny-7B", source="f"),
        **facts,
    )


def imported(*words: str, **facts: Any) -> Imported:
    """Returns the service of one launch."""
    [service] = services_of([launch(*words, **facts)], CATALOGS)
    return service


def config_of(*recipes: Recipe) -> Config:
    """Returns what stoker reads back from the text that was made of launches."""
    return parse_config(tomllib.loads(render_services(services_of(recipes, CATALOGS))), "/home/me/stoker.toml")


def wish_of(*words: str, **facts: Any) -> Wish:
    """Returns the wish that one launch becomes, read back from its text."""
    [wish] = config_of(launch(*words, **facts)).services.values()
    return wish


def plain(value: object) -> Any:
    """Returns a value with lists for tuples, as tomllib gives them."""
    return msgspec.json.decode(msgspec.json.encode(value))


VLLM = ("example/Tiny-7B", "--port", "8000", "--max-model-len", "4096", "--max-num-seqs", "8", "--served-model-name", "tiny",
        "--gpu-memory-utilization", "0.80", "--attention-backend", "triton", "--enable-prefix-caching")  # fmt: skip


def test_vllms_flags_become_fields_and_the_rest_stays_flags() -> None:
    wish = wish_of(*VLLM, image="vllm/vllm-openai:v1", environment={"FAST": "1"}, mounts=(("~/.cache", "/cache"),))
    assert (wish.name, wish.engine, wish.image) == ("tiny", "vllm", "vllm/vllm-openai:v1")
    assert (wish.port, wish.context, wish.parallel, wish.memory_share) == (8000, 4096, 8, 0.8)
    assert wish.flags == {"attention-backend": "triton", "enable-prefix-caching": True}
    assert wish.environment == {"FAST": "1"}
    assert wish.mounts == (f"{Path.home()}/.cache:/cache",)
    assert wish.served_name is None  # it is the service's own name


def test_sglangs_flags_become_fields() -> None:
    words = ("--model-path", "example/Tiny-7B", "--context-length", "8192", "--max-running-requests", "4", "--tp", "1",
             "--mem-fraction-static", "0.7", "--cuda-graph-bs", "1", "2", "4")  # fmt: skip
    wish = wish_of(*words, engine="sglang")
    assert (wish.context, wish.parallel, wish.memory_share) == (8192, 4, 0.7)
    assert wish.flags == {"tp": 1, "cuda-graph-bs": (1, 2, 4)}
    assert wish.served_name == "example/Tiny-7B"  # what it answers to where no name is given


def test_llama_cpps_context_is_shared_out_among_its_slots() -> None:
    words = ("-m", "/m/tiny.gguf", "-c", "16384", "-np", "4", "-ngl", "99", "-t", "8", "-fa", "on", "-a", "tiny")
    wish = wish_of(*words, engine="llamacpp", model="/m/tiny.gguf", program=("/opt/llama-server",))
    assert (wish.context, wish.parallel, wish.gpu_layers, wish.threads) == (4096, 4, 99, 8)
    assert (wish.server, wish.model) == ("/opt/llama-server", "/m/tiny.gguf")
    assert wish.flags == {"flash-attn": "on"}


def test_without_a_number_of_slots_one_gets_the_whole_context() -> None:
    service = imported("-c", "16384", engine="llamacpp")
    assert (service.keys["context"], service.keys["parallel"]) == (16384, 1)
    assert "one slot is written here" in service.notes[-1]


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--max-model-len", "auto"), ("--max-model-len", "-1"), ("--port", "99999"), ("--gpu-memory-utilization", "2"),
     ("--max-num-seqs", "9" * 5000), ("--port", "\u0663")],
)  # fmt: skip
def test_a_value_that_a_field_cannot_hold_stays_a_flag(flag: str, value: str) -> None:
    service = imported(flag, value)
    assert str(service.flags[flag.lstrip("-")]) == value
    assert not {"context", "port", "memory_share", "parallel"} & service.keys.keys()


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ('{"method":"mtp","num_speculative_tokens":5}', {"speculation": "mtp", "draft_tokens": 5}),
        ('{"method":"eagle3","model":"a/b","num_speculative_tokens":3}',
         {"speculation": "eagle3", "draft": "a/b", "draft_tokens": 3}),
        ('{"method":"dflash","model":"a/b","num_speculative_tokens":3}', {}),
        ('{"method":"mtp","num_speculative_tokens":5,"moe_backend":"triton"}', {}),
        ('{"method":"mtp","num_speculative_tokens":true}', {}),
        ('{"method":["mtp"]}', {}),
        ("[]", {}),
        ("{", {}),
    ],
)  # fmt: skip
def test_speculation_becomes_fields_only_where_they_say_all_of_it(config: str, fields: dict[str, object]) -> None:
    service = imported("--speculative-config", config)
    assert {
        name: value for name, value in service.keys.items() if name in ("speculation", "draft", "draft_tokens")
    } == fields
    assert ("speculative-config" in service.flags) == (not fields)
    assert any("stays in the flags" in note for note in service.notes) == (not fields)


def test_without_speculation_none_is_added() -> None:
    assert imported("--max-model-len", "4096").keys["speculation"] == "off"


MOUNTS = (("/srv/tiny", "/model"), ("/srv/eagle", "/eagle"), ("/srv/t", "/t"), ("hf_cache", "/root/.cache"))


def test_models_are_named_by_their_paths_outside_wherever_they_stand_and_not_mounted_twice() -> None:
    config = '{"method":"eagle","model":"/eagle","num_speculative_tokens":3,"x":["/eagle/head",1]}'
    words = ("--tokenizer", "/model", "--chat-template", "/model/c.jinja", "--other", "/models", "--template", "/t/x.jinja")
    wish = wish_of(*words, "--speculative-config", config, image="i", mounts=MOUNTS, model="/model")
    assert wish.model == "/srv/tiny"
    assert wish.mounts == ("/srv/t:/t", "hf_cache:/root/.cache")
    assert wish.flags == {
        "tokenizer": "/srv/tiny", "chat-template": "/srv/tiny/c.jinja", "other": "/models", "template": "/t/x.jinja",
        "speculative-config": config.replace("/eagle", "/srv/eagle"),
    }  # fmt: skip


def test_a_draft_that_becomes_a_field_is_named_by_its_path_outside() -> None:
    config = '{"method":"eagle","model":"/eagle/","num_speculative_tokens":3}'
    service = imported("--speculative-config", config, image="i", mounts=MOUNTS, model="/model")
    assert service.keys["draft"] == "/srv/eagle"
    sglang = imported("--speculative-draft-model-path", "/eagle", engine="sglang", image="i", mounts=MOUNTS, model="/model")
    assert sglang.flags["speculative-draft-model-path"] == "/srv/eagle"


def test_a_mount_that_something_else_needs_stays() -> None:
    mounts = (("/srv/models", "/models"), ("/srv/hf", "/hf"))
    recipe = {"image": "i", "mounts": mounts, "model": "/models/tiny"}
    kept = wish_of("--chat-template", "/models/t.jinja", **recipe)
    assert (kept.model, kept.mounts) == ("/srv/models/tiny", ("/srv/models:/models", "/srv/hf:/hf"))
    assert wish_of(**recipe).mounts == ("/srv/hf:/hf",)
    assert wish_of(**recipe, environment={"X": "/a:/models/x"}).mounts == kept.mounts


def test_a_model_in_a_volume_keeps_its_path_and_that_is_told() -> None:
    service = imported(image="i", mounts=(("models", "/models"),), model="/models/tiny")
    assert (service.keys["model"], service.keys["mounts"]) == ("/models/tiny", ("models:/models",))
    assert "`docker volume inspect models`" in service.notes[-1]


def test_a_read_only_mount_stays_one() -> None:
    container = {"volume": ("/srv/t:/t:ro,z", "/srv/u:/u:rw", "/srv/ro:/ro")}
    wish = wish_of(image="i", mounts=(("/srv/t", "/t"), ("/srv/u", "/u"), ("/srv/ro", "/ro")), container=container)
    assert wish.mounts == ("/srv/t:/t:ro", "/srv/u:/u", "/srv/ro:/ro")


def test_thousands_of_one_name_are_named_at_once() -> None:
    names = [service.name for service in services_of([launch(name="x" * 99)] * 5000, CATALOGS)]
    assert len(set(names)) == 5000
    assert max(map(len, names)) == 63


def test_a_draft_model_of_llama_cpp_becomes_fields() -> None:
    wish = wish_of("-m", "/m/a.gguf", "-md", "/m/b.gguf", "--draft-max", "16", engine="llamacpp", model="/m/a.gguf")
    assert (wish.speculation, wish.draft, wish.draft_tokens) == ("draft", "/m/b.gguf", 16)
    assert wish.flags == {}


def test_keys_of_an_object_become_one_json_text() -> None:
    words = (
        "--speculative_config.method",
        "mtp",
        "--speculative_config.num_speculative_tokens",
        "7",
        "--a.b=true",
        "--a.c=x",
    )
    service = imported(*words)
    assert (service.keys["speculation"], service.keys["draft_tokens"]) == ("mtp", 7)
    assert service.flags == {"a": '{"b":true,"c":"x"}'}


def test_no_secret_is_copied_and_each_is_told() -> None:
    recipe = launch(
        "--api-key", "letmein", "--hf-token", TOKEN, "--chat-template", f"https://x/?t={TOKEN}",
        environment={"HF_TOKEN": TOKEN, "OPENAI_API_KEY": "swordfish", "NOTE": TOKEN, "MAX_TOKENS": "5"},
        lost_environment={"DB_PASSWORD": "opensesame"},
        unknown=(f"`--api-key letmein` and {TOKEN} are odd",),
    )  # fmt: skip
    text = render_services(services_of([recipe], CATALOGS))
    for secret in ("letmein", TOKEN, "swordfish", "opensesame"):
        assert secret not in text
    for told in ("--api-key", "--hf-token", "HF_TOKEN", "OPENAI_API_KEY", "NOTE", "DB_PASSWORD"):
        assert f"not carried over: the secret {'of ' if told.startswith('-') else ''}{told}: " in text
    assert config_of(recipe).services["tiny"].environment == {"MAX_TOKENS": "5"}


def test_what_belongs_to_the_container_or_the_unit_is_told() -> None:
    recipe = launch(
        "--host", "0.0.0.0", container={"network": ("host",), "env": ("A=1",), "privileged": ()},
        unit={"MemoryMax": ("100G",)}, lost_environment={"FAST": "1"},
    )  # fmt: skip
    lines = render_services(services_of([recipe], CATALOGS)).splitlines()
    told = [line.removeprefix("# not carried over: ").partition(":")[0] for line in lines if "not carried" in line]
    assert told == ["--host 0.0.0.0", "docker's --network, --privileged", "systemd's MemoryMax", "FAST"]


def test_a_model_inside_the_container_is_named_by_its_path_outside() -> None:
    mounts = (("$HOME/models", "/models"), ("/x", "/model"))
    wish = wish_of(model="/models/tiny.gguf", mounts=mounts, image="i", engine="llamacpp")
    assert wish.model.endswith("/models/tiny.gguf")
    assert "$HOME" not in wish.model
    assert wish_of(model="/modelsx/tiny.gguf", mounts=mounts).model == "/modelsx/tiny.gguf"


def test_folders_that_are_mounted_are_named_in_full() -> None:
    mounts = (("./cache", "/a"), ("$HOME/x", "/b"), ("${HOME}", "/c"), ("volume", "/d"), ("$HOMES/x", "/e"))
    wish = wish_of(image="i", mounts=mounts, source="/srv/compose.yaml")
    assert wish.mounts == ("/srv/cache:/a", f"{Path.home()}/x:/b", f"{Path.home()}:/c", "volume:/d", "$HOMES/x:/e")


def test_of_many_options_some_are_named() -> None:
    service = imported(unit={f"Key{number}": ("x",) for number in range(12)})
    told = "systemd's Key0, Key1, Key2, Key3, Key4, Key5, Key6, Key7 and 4 more: `stoker install` writes the unit"
    assert service.not_carried_over == (told,)


@pytest.mark.parametrize(
    ("published", "port"), [("8001:8000", 8001), ("127.0.0.1:8001:8000/tcp", 8001), ("8001:9999", 8000), ("8000", 8000)]
)
def test_a_published_port_is_the_one_outside(published: str, port: int) -> None:
    assert wish_of("--port", "8000", image="i", container={"publish": (published,)}).port == port


def test_a_switch_does_not_swallow_the_model_behind_it() -> None:
    service = imported("--trust-remote-code", "example/Tiny-7B", "--max-model-len=4096", "-tp=2")
    assert service.flags == {"trust-remote-code": True, "tensor-parallel-size": 2}
    assert service.keys["context"] == 4096


def test_a_short_flag_without_a_long_name_is_told() -> None:
    service = imported("-tp", "2", "-O3", "-Z3")
    assert service.flags == {"tensor-parallel-size": 2, "optimization-level": 3}
    assert service.not_carried_over == ("-Z3: a service names flags by their long names",)


def test_names_are_valid_and_differ() -> None:
    names = ["Tiny 7B!", "tiny-7b", "...", "\u017c\u00f3\u0142w", "x" * 100, "x" * 99, None]
    services = services_of([launch(name=name, model="Org/Big_Model") for name in names], CATALOGS)
    assert [service.name for service in services] == [
        "tiny-7b", "tiny-7b-2", "model", "w", "x" * 63, f"{'x' * 60}-2", "big_model",
    ]  # fmt: skip


def test_llama_swaps_id_stays_the_name_that_clients_know() -> None:
    wish = wish_of("--alias", "other", engine="llamacpp", kind="llama-swap", name="Qwen/Big")
    assert (wish.name, wish.served_name) == ("qwen-big", "Qwen/Big")


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"engine": None, "program": ("sd-server", "--x")}, "`sd-server --x` is no engine that Stoker starts"),
        ({"engine": "trtllm"}, "`trtllm` is no engine that Stoker starts"),
        ({"model": None}, "it names no model"),
        ({"program": (), "words": ()}, "it starts nothing"),
        ({"kind": "sudoers", "engine": None, "grants": ("a ALL=(root) x",)}, "it grants rights"),
    ],
)
def test_what_starts_nothing_becomes_a_comment(facts: dict[str, object], why: str) -> None:
    service = imported(**facts)
    assert service.keys == {}
    assert why in service.notes[0]
    text = render_services([service])
    assert tomllib.loads(text) == {}
    assert text.startswith("# no service was made of tiny in f\n")


nasty = st.text(max_size=12) | st.sampled_from(
    [
        "--port",
        "--host",
        "--speculative-config",
        "-md",
        "--spec-type",
        "-np",
        "--draft-max",
        "--alias",
        "-c",
        "{",
        "1e999",
        "nan",
        "-1",
        "0x1",
        "\x7f",
    ]
)


@given(
    st.lists(nasty, max_size=8),
    st.dictionaries(nasty, nasty, max_size=3),
    nasty,
    st.sampled_from(["vllm", "sglang", "llamacpp"]),
)
def test_whatever_was_written_is_read_back_as_it_was(
    words: list[str], environment: dict[str, str], text: str, engine: str
) -> None:
    recipe = launch(
        *words, engine=engine, environment=environment, name=text, model=text or None, image=text, unknown=(text,),
        lost_environment=environment, mounts=((text, text),), source=text,
    )  # fmt: skip
    [service] = services_of([recipe], CATALOGS)
    tree = tomllib.loads(render_services([service])).get("service", {}).get(service.name, {})
    assert tree.pop("flags", {}) == plain(service.flags)
    assert tree.pop("environment", {}) == service.environment
    assert tree == plain(service.keys)
