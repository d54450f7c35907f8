"""One command's words: engines behind prefixes, containers with their options, and variables that never arrive."""

from __future__ import annotations

import shlex

import pytest

from stoker.errors import WrongUse
from stoker.plan.written.docker_options import read_options
from stoker.plan.written.read import read_command
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe
from support import fails


def read(text: str, **environment: str) -> Recipe:
    """Reads a command that is started with these variables."""
    recipe = recipe_of(shlex.split(text), environment=environment)
    assert recipe is not None
    return recipe


@pytest.mark.parametrize(
    ("text", "engine", "model"),
    [
        ("vllm serve a/b --port 1", "vllm", "a/b"),
        ("vllm serve --port 1 --model a/b", "vllm", "a/b"),
        ("vllm serve --port 8000 a/b", "vllm", "a/b"),
        ("/opt/venv/bin/python3.12 -u -m vllm.entrypoints.openai.api_server --model=a/b", "vllm", "a/b"),
        ("python -m sglang.launch_server --model-path a/b", "sglang", "a/b"),
        ("sglang serve --model-path a/b", "sglang", "a/b"),
        ("sglang serve a/b", "sglang", "a/b"),
        ("llama-server -m /x.gguf -c 1", "llamacpp", "/x.gguf"),
        ("./build/bin/llama-server -hf a/b:Q4_K_M", "llamacpp", "a/b:Q4_K_M"),
        ("trtllm-serve a/b --port 1", "trtllm", "a/b"),
        ("trtllm-serve serve a/b", "trtllm", "a/b"),
        ("nohup numactl --cpunodebind=0 -m 0 vllm serve a/b", "vllm", "a/b"),
        ("sudo -u llm env A=b exec nice -n 5 taskset 0xff vllm serve a/b", "vllm", "a/b"),
        ("uv run --with flashinfer vllm serve a/b", "vllm", "a/b"),
        ("uv run python -m sglang.launch_server --model a/b", "sglang", "a/b"),
        ("timeout -k 5 60 stdbuf -oL vllm serve a/b", "vllm", "a/b"),
        ("bash -lc 'cd /x && vllm serve a/b'", "vllm", "a/b"),
        ("bash -c 'bash -c \"vllm serve a/b\"'", "vllm", "a/b"),
        ("LLAMA_ARG_MODEL=/x.gguf llama-server", "llamacpp", "/x.gguf"),
    ],
)
def test_an_engine_is_found_behind_what_stands_before_it(text: str, engine: str, model: str) -> None:
    recipe = read(text)
    assert (recipe.engine, recipe.model, recipe.kind) == (engine, model, "command")


@pytest.mark.parametrize(
    "text",
    ["vllm bench serve", "vllm", "python train.py", "llama-swap --config x", "docker compose run x", "docker ps", "sglang",
     "python -m http.server", "echo vllm serve x", "sudo", "env A=b", "bash -c", "docker"],
)  # fmt: skip
def test_other_commands_are_no_launch(text: str) -> None:
    assert recipe_of(shlex.split(text)) is None
    with fails(WrongUse, text.split()[0], "docker run"):
        read_command(shlex.split(text))


@pytest.mark.parametrize(
    ("text", "engine", "words"),
    [
        ("docker run vllm/vllm-openai:v0.28.0 a/b --port 1", "vllm", ("a/b", "--port", "1")),
        ("docker run vllm/vllm-openai --model a/b", "vllm", ("--model", "a/b")),
        ("docker run --entrypoint vllm vllm/vllm-openai serve a/b", "vllm", ("a/b",)),
        ("docker run --entrypoint=bash x -c 'vllm serve a/b'", "vllm", ("a/b",)),
        ('podman run --entrypoint \'["vllm", "serve"]\' x a/b', "vllm", ("a/b",)),
        ("docker run lmsysorg/sglang python3 -m sglang.launch_server --model-path a/b", "sglang", ("--model-path", "a/b")),
        ("docker run ghcr.io/ggml-org/llama.cpp:server-cuda -hf a/b", "llamacpp", ("-hf", "a/b")),
        ("docker run someone/vllm-spark serve a/b", "vllm", ("a/b",)),
        ("sudo docker --context x container run nvcr.io/nvidia/vllm:26.05-py3 vllm serve a/b", "vllm", ("a/b",)),
        ("docker exec -it node vllm serve a/b", "vllm", ("a/b",)),
        ("docker run $DOCKER_OPTS -d ${EXTRA[@]} $IMAGE vllm serve a/b", "vllm", ("a/b",)),
    ],
)
def test_an_engine_is_found_in_its_container(text: str, engine: str, words: tuple[str, ...]) -> None:
    recipe = read(text)
    assert (recipe.engine, recipe.words, recipe.kind) == (engine, words, "docker")


def test_a_container_whose_command_is_hidden_keeps_the_engine_of_its_image() -> None:
    recipe = read("docker run --rm lmsysorg/sglang:v0.5.12 /start.sh now")
    assert (recipe.engine, recipe.words, recipe.model) == ("sglang", (), None)
    assert recipe.program == ("docker", "run", "/start.sh", "now")
    assert read("docker run nginx").engine is None


def test_options_of_docker_have_long_names() -> None:
    options = read_options(
        shlex.split(
            "-dit --rm -p8000:8000 -p=1:1 -v a:b --volume=c:d --net host --ipc=host -eA=b -e C -u 1000 -w /x -m 100g "
            "--ulimit memlock=-1 --privileged=false --name x --restart no --restart always -- image --rm"
        )
    )
    assert options.rest == ("image", "--rm")
    assert options.unknown == ()
    assert options.options == {
        "detach": (), "interactive": (), "tty": (), "rm": (), "publish": ("8000:8000", "1:1"), "volume": ("a:b", "c:d"),
        "network": ("host",), "ipc": ("host",), "env": ("A=b", "C"), "user": ("1000",), "workdir": ("/x",),
        "memory": ("100g",), "ulimit": ("memlock=-1",), "name": ("x",), "restart": ("always",),
    }  # fmt: skip


def test_options_that_nobody_knows_are_told() -> None:
    options = read_options(shlex.split("--fancy yes -z --bare --rm image"))
    assert options.rest == ("image",)
    assert options.options == {"fancy": ("yes",), "bare": (), "rm": ()}
    assert len(options.unknown) == 3


def test_mounts_are_read_from_both_spellings() -> None:
    recipe = read(
        "docker run -v /a:/b:ro -v ${HF:-/h:x}:/c -v named --mount type=bind,src=/d,dst=/e --mount type=tmpfs,target=/f "
        "vllm/vllm-openai a/b"
    )
    assert recipe.mounts == (("/a", "/b"), ("${HF:-/h:x}", "/c"), ("/d", "/e"))


def test_a_variable_before_docker_never_arrives() -> None:
    recipe = read("A=1 B=2 docker run -e B -e C -e D=4 --env-file x.env vllm/vllm-openai a/b", E="5")
    assert recipe.environment == {"B": "2", "C": "$C", "D": "4"}
    assert recipe.lost_environment == {"A": "1", "E": "5"}
    assert any("`C` is handed on" in said for said in recipe.unknown)
    assert any("x.env" in said for said in recipe.unknown)


def test_sudo_drops_variables_unless_told_to_keep_them() -> None:
    assert read("sudo vllm serve a/b", A="1").lost_environment == {"A": "1"}
    assert read("sudo -E vllm serve a/b", A="1").environment == {"A": "1"}
    assert read("sudo A=2 vllm serve a/b", A="1").environment == {"A": "2"}
    assert read("env -i B=1 vllm serve a/b", A="1").environment == {"B": "1"}
    assert read("sudo docker run -e A vllm/vllm-openai a/b", A="1").environment == {"A": "$A"}


def test_what_a_shell_in_the_container_sets_reaches_the_engine() -> None:
    recipe = read("docker run -e A=1 x bash -c 'export B=2; C=3 vllm serve $MODEL --x $A'")
    assert recipe.environment == {"A": "1", "B": "2", "C": "3"}
    assert recipe.words == ("$MODEL", "--x", "1")
    assert any("`$MODEL` is not set" in said for said in recipe.unknown)
    assert recipe.program == ("docker", "run", "vllm", "serve")


def test_what_a_shell_in_the_container_does_first_stays_part_of_the_program() -> None:
    recipe = read("docker run x bash -c 'pip install y && exec vllm serve a/b | tee log'")
    assert recipe.program == ("docker", "run", "bash", "-c", "pip install y && exec vllm serve")
    assert recipe.words == ("a/b",)


def test_settings_in_a_file_are_told() -> None:
    assert any("`x.yaml`" in said for said in read("vllm serve a/b --config x.yaml").unknown)
