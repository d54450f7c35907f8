"""Engines that another program starts, containers that are started again, and lines that nobody reads."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.plan.written.docker_calls import find_call
from stoker.plan.written.read import read_command, read_written
from stoker.plan.written.restarts import is_restart
from stoker.plan.written.runners import handed_on
from stoker.plan.written.unread import names_engine
from stoker.plan.written.words import recipe_of
from stoker.records import Recipe


def read(text: str) -> Recipe:
    recipe = recipe_of(shlex.split(text), environment={"A": "1"})
    assert recipe is not None
    return recipe


def beside(text: str) -> list[list[str | None]]:
    """Returns the models that run beside each launch of a script."""
    return [[one.model for one in recipe.beside] for recipe in read_written(text, "x.sh")]


@pytest.mark.parametrize(
    "text",
    [
        "ssh host vllm serve a/b --port 1",
        "ssh -t -p 22 -i key me@host 'cd /x && vllm serve a/b --port 1'",
        "ssh host sudo docker run vllm/vllm-openai:v0.26.0 a/b --port 1",
        "tmux new -d 'vllm serve a/b --port 1'",
        "tmux -L x new-session -ds name -c /x vllm serve a/b --port 1",
        "tmux send-keys -t name 'vllm serve a/b --port 1' Enter",
        "screen -dmS name vllm serve a/b --port 1",
        "screen -dm bash -c 'vllm serve a/b --port 1'",
        "screen -S name -X stuff 'vllm serve a/b --port 1\\n'",
        "su - llm -c 'vllm serve a/b --port 1'",
        "script -qc 'vllm serve a/b --port 1' log",
        "eval 'vllm serve' a/b --port 1",
        "torchrun --nproc-per-node 1 -m vllm.entrypoints.openai.api_server --model a/b --port 1",
        "docker create --name x vllm/vllm-openai:v0.26.0 a/b --port 1",
        "docker compose -f x.yml run --rm --no-deps node vllm serve a/b --port 1",
        "docker compose exec node vllm serve a/b --port 1",
        "$PYTHON -m vllm.entrypoints.openai.api_server --model a/b --port 1",
    ],
)
def test_an_engine_is_found_behind_what_starts_it(text: str) -> None:
    recipe = read(text)
    assert (recipe.engine, recipe.model, recipe.words[-2:]) == ("vllm", "a/b", ("--port", "1"))


def test_the_way_over_another_program_is_told() -> None:
    assert any("`tmux` starts it, there" in said for said in read("tmux new 'vllm serve a/b'").unknown)
    recipe = read("ssh host vllm serve a/b")
    assert any("on another machine" in said for said in recipe.unknown)
    assert (recipe.environment, recipe.lost_environment) == ({}, {"A": "1"})
    assert read("tmux new 'vllm serve a/b'").environment == {"A": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "ssh host",
        "ssh",
        "tmux attach -t x",
        "tmux",
        "tmux kill-session -t vllm",
        "screen -ls",
        "screen",
        "su - me",
        "eval",
        "script log",
        "tmux send-keys -t x C-c",
        "ssh host uptime",
        "docker compose run node",
        "docker-compose run x vllm serve y",
    ],
)
def test_programs_that_are_handed_no_engine_start_none(text: str) -> None:
    assert recipe_of(shlex.split(text)) is None


@given(
    st.lists(st.sampled_from(["ssh", "tmux", "screen", "su", "eval", "-c", "-t", "--", "-X", "stuff", "new", "x", "", "-"]))
)
def test_no_words_upset_what_hands_on(words: list[str]) -> None:
    handed_on(words)
    find_call(["docker", *words])
    names_engine(words)


def test_shells_in_shells_in_terminals_end_somewhere() -> None:
    assert recipe_of(["eval"] * 400 + ["vllm", "serve", "x"]) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("docker restart x", "x"),
        ("sudo docker restart -t 5 x y", "x"),
        ("podman container restart x", "x"),
        ("docker compose -f a.yml restart", None),
        ("docker-compose restart node", "node"),
    ],
)
def test_a_restart_is_a_recipe_without_an_engine(text: str, name: str | None) -> None:
    [recipe] = read_command(shlex.split(text))
    assert is_restart(recipe)
    assert (recipe.kind, recipe.name, recipe.engine, recipe.program) == ("docker", name, None, tuple(shlex.split(text)))


def test_a_launch_with_a_policy_is_no_restart() -> None:
    assert not is_restart(read("docker run --restart always nginx"))
    assert recipe_of(shlex.split("docker ps")) is None


def test_a_script_keeps_its_restarts_behind_its_launches() -> None:
    found = read_written("docker restart x\ndocker run -d --name x vllm/vllm-openai:v0.26.0 a/b --port 1\n", "x.sh")
    assert [(one.engine, one.name) for one in found] == [("vllm", "x"), (None, "x")]
    [alone] = read_written("docker run -d --name web nginx\ndocker restart web\n", "x.sh")
    assert alone.image == "nginx"


@pytest.mark.parametrize(
    ("text", "running"),
    [
        ("vllm serve a &\nvllm serve b", [[], ["a"]]),
        ("vllm serve a | tee log &\nvllm serve b &\nvllm serve c", [[], ["a"], ["a", "b"]]),
        ("(cd x; vllm serve a) &\nvllm serve b", [[], ["a"]]),
        ("docker run -d i vllm serve a\ndocker run -d i vllm serve b", [[], ["a"]]),
        ("tmux new -d 'vllm serve a'\ntmux new -d 'vllm serve b'", [[], ["a"]]),
        ("[ -d /x ] || exit 1\nnohup vllm serve a &\nP=$!\nkill -0 $P\nvllm serve b", [[], ["a"]]),
        ("vllm serve a\nvllm serve b", [[], []]),
        ("vllm serve a &\nwait\nvllm serve b", [[], []]),
        ("vllm serve a &\nkill $!\nvllm serve b", [[], []]),
        ("docker run -d --name x i vllm serve a\ndocker rm -f x\nvllm serve b", [[], []]),
        ("docker run -d --name x i vllm serve a\ndocker stop -t 9 y\nvllm serve b", [[], ["a"]]),
        ("docker run -d --name x i vllm serve a\ndocker stop $(docker ps -q)\nvllm serve b", [[], []]),
        ("docker run -d --name x i vllm serve a\ndocker run -d --name x i vllm serve b", [[], []]),
        ("docker run -d i vllm serve a\ndocker compose down\nvllm serve b", [[], []]),
        ("if [ $1 = a ]; then vllm serve a & else vllm serve b & fi\nvllm serve c", [[], [], []]),
        ("f() { vllm serve a & }\nvllm serve b", [[], []]),
        ("ssh one vllm serve a &\nvllm serve b", [[], []]),
        ("docker run -d lmsysorg/sglang:v0.5.12 sleep infinity\ndocker exec node vllm serve a", [[], []]),
    ],
)
def test_what_runs_beside_a_launch_is_what_was_started_and_not_ended(text: str, running: list[list[str | None]]) -> None:
    assert beside(text) == running


@pytest.mark.parametrize(
    "text",
    [
        "parallel vllm serve {} ::: a b",
        "xargs -n1 vllm serve",
        "watch 'vllm serve x'",
        "kubectl run x --image vllm/vllm-openai:v1",
        "docker service create vllm/vllm-openai:v0.26.0",
        "helper python3 -m sglang.launch_server x",
    ],
)
def test_a_command_that_seems_to_start_an_engine_is_noticed(text: str) -> None:
    assert recipe_of(shlex.split(text)) is None
    assert names_engine(shlex.split(text))


@pytest.mark.parametrize(
    "text",
    [
        "echo vllm serve x",
        "pip install vllm",
        "pkill -f 'vllm serve'",
        "docker pull vllm/vllm-openai:v0.26.0",
        "ps -C llama-server",
        "cmake --build . --target llama-server -j 8",
        "cp llama-server /usr/bin",
        "git clone https://github.com/vllm-project/vllm",
        "say 'vllm serve x is up'",
        "ready 'Starting vllm serve'",
        "docker build -t vllm/vllm-openai:own .",
        "which vllm",
        "",
    ],
)
def test_a_command_that_only_names_an_engine_is_none(text: str) -> None:
    assert not names_engine(shlex.split(text))


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (
            "docker run $(cat o) vllm/vllm-openai:v0.26.0 a/b",
            ["the options that `$(cat o)` gives are known only when it runs"],
        ),
        (
            "docker run `cat o` -d vllm/vllm-openai:v0.26.0 a/b",
            ["the options that `$(cat o)` gives are known only when it runs"],
        ),
        ("vllm serve a/b $(cat f)", ["the flags that `$(cat f)` gives are known only when it runs"]),
        ("vllm serve a/b --port $(cat f)", []),
        ("vllm serve $(cat model)", []),
        ("docker run -d lmsysorg/sglang:v0.5.12 /start.sh", ["what `/start.sh` starts in the container is not seen here"]),
        ("docker run -it vllm/vllm-openai:v0.26.0 bash", []),
        ("docker run $OPTS vllm/vllm-openai:v0.26.0 a/b", []),
    ],
)
def test_what_hides_a_part_of_a_launch_is_told(text: str, unread: list[str]) -> None:
    [recipe] = read_written(text + "\n", "x.sh")
    assert recipe.engine
    assert list(recipe.unread) == unread
    assert set(unread) <= set(recipe.unknown)
