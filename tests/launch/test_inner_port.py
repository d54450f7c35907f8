"""The port by which an engine's own processes meet: said where the engine would pick one too early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from home import Home
from stoker.engines import words_of
from stoker.facts.machine.ports import is_port_free
from stoker.launch.inner_port import with_inner_port
from stoker.records import Plan, Setting
from support import make_plan

DEMO = Path(__file__).parents[2] / "models" / "demo"
TABLE = f'[service.coder]\nmodel = "{DEMO}/hf"\nengine = "sglang"\nversion = "0.5.16"\ncontext = 2048\n'
# It keeps the words by which it was started, and ends: what is asked here is over by then.
PROGRAM = '#!/bin/sh\necho "$@" > "{seen}"\nexit 7\n'


def words(*settings: Setting, engine: str = "sglang", version: str | None = "0.5.16") -> tuple[str, ...]:
    """Returns the words of a plan as it is started."""
    plan: Plan = make_plan(*settings, engine=engine, engine_version=version)
    return words_of(with_inner_port(plan, lambda: 61_007).settings)


def test_sglang_is_given_the_port_that_it_would_pick_too_early() -> None:
    assert words() == ("--nccl-port", "61007")


@pytest.mark.parametrize(
    ("version", "is_given"),
    [
        ("0.5.9", True),
        ("0.5.16.post1", True),
        ("0.6.0", True),
        ("0.5.8", False),
        ("0.4.6", False),
        ("latest", False),
        (None, False),
    ],
)
def test_a_version_that_may_not_know_the_flag_is_not_ended_by_it(version: str | None, is_given: bool) -> None:
    assert ("--nccl-port" in words(version=version)) == is_given


@pytest.mark.parametrize(
    ("flags", "is_given"),
    [
        ({"--dp-size": 2}, False), ({"--data-parallel-size": "4"}, False), ({"--dp_size": 2}, False),
        ({"--dp-size": 1}, True),
        ({"--dp-size": 2, "--enable-dp-attention": True}, True), ({"--config": "a.yaml"}, False),
    ],
)  # fmt: skip
def test_replicas_that_need_a_port_each_pick_their_own(flags: dict[str, Any], is_given: bool) -> None:
    assert ("--nccl-port" in words(*(Setting(name, value, "a test") for name, value in flags.items()))) == is_given


def test_what_the_users_program_says_counts_too() -> None:
    for word in ("--dp-size", "--nccl-port", "--config"):
        plan: Plan = make_plan(
            engine="sglang", engine_version="0.5.16", program=("python3", "-m", "sglang.launch_server", word, "2")
        )
        assert with_inner_port(plan, lambda: 61_007) == plan


@pytest.mark.parametrize("flag", ["--nccl-port", "--nccl_port", "--dist-init-addr", "--nccl-init-addr"])
def test_what_is_said_already_holds(flag: str) -> None:
    assert words(Setting(flag, "29501", "the user said so")) == (flag, "29501")


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_engines_that_listen_where_they_pick_are_given_none(engine: str) -> None:
    assert words(engine=engine) == ()


def test_each_start_says_a_port_of_its_own(tmp_path: Path) -> None:
    home, seen, program = Home(tmp_path), tmp_path / "seen", tmp_path / "sglang"
    program.write_text(PROGRAM.format(seen=seen))
    program.chmod(0o755)
    home.configure(TABLE + f'program = ["{program}"]\n')
    try:
        home.run("up", "coder", code=None)
    finally:
        home.end()
    said = seen.read_text().split()
    inner, port = (int(said[said.index(flag) + 1]) for flag in ("--nccl-port", "--port"))
    assert inner != port
    assert is_port_free("0.0.0.0", inner)
