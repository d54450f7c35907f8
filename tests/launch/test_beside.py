"""A text that an engine reads from a file: written before the start, seen by a container, or refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from home import Home
from stoker.errors import Refused
from stoker.flows.ownership import make_state_folder
from stoker.launch.beside import plan_beside
from stoker.launch.exported import Exported
from stoker.launch.from_plan import container_of, launch_of
from stoker.launch.kubernetes import Cluster, render_kubernetes
from stoker.records import Mount, Plan, Setting
from stoker.supervise.plan_files import write_beside
from support import fails, make_plan

FLAG, TIERS = "--speculative-adaptive-config", '{"1":{"candidate_steps":[4]},"3":{"candidate_steps":[1]}}'
DEMO = Path(__file__).parents[2] / "models" / "demo"
TABLE = (
    f'[service.coder]\nmodel = "{DEMO}/hf"\nengine = "sglang"\nversion = "0.5.16"\ncontext = 2048\nparallel = 8\n'
    f'speculation = "eagle3"\ndraft = "{DEMO}/hf-eagle3"\ndraft_tiers = [[1, 2, 4], [3, 8, 1]]\n'
)
# It keeps what it was given to read, and ends: what is asked here is over by then.
PROGRAM = """#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" = "{flag}" ] && cat "$2" > "{seen}"; shift; done
exit 7
"""


def tiered(engine: str = "sglang", value: str = TIERS) -> Plan:
    """Returns a plan that says such a text."""
    setting, image = Setting(FLAG, value, "a test"), "lmsysorg/sglang:v0.5.16"
    made: Plan = make_plan(setting, engine=engine, image=image, model_path="/srv/m")
    return made


def test_a_text_becomes_a_file_that_the_container_sees_where_it_lies() -> None:
    moved, [file] = plan_beside(tiered(), "/state/files")
    assert file.path.startswith(f"/state/files/{moved.service}-speculative-adaptive-config-")
    assert json.loads(file.text) == json.loads(TIERS)
    launch = container_of(moved, 30000)
    assert launch.words[launch.words.index(FLAG) + 1] == file.path
    assert Mount(file.path, file.path, read_only=True) in launch.mounts


def test_another_text_is_another_file_and_the_same_one_the_same(tmp_path: Path) -> None:
    first, again, other = (write_beside(tiered(value=one), tmp_path) for one in (TIERS, TIERS, '{"1":{}}'))
    assert first == again != other
    assert {path.read_text().strip() for path in tmp_path.iterdir()} == {TIERS, '{"1":{}}'}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


@pytest.mark.parametrize("plan", [tiered(value="/srv/tiers.json"), tiered(engine="vllm")])
def test_a_path_of_the_users_and_another_engines_words_stay_as_they_are(plan: Plan) -> None:
    assert plan_beside(plan, "/state/files") == (plan, ())


def test_a_form_that_brings_no_file_along_is_refused_with_what_to_do() -> None:
    for render in (lambda: launch_of(tiered(), 30000), lambda: render_kubernetes(Exported(tiered(), 1, 1, ()), Cluster())):
        with fails(Refused, "is a file beside the engine", "draft_tiers"):
            render()


def test_an_engine_is_started_with_the_file_in_its_place(tmp_path: Path) -> None:
    home, seen, program = Home(tmp_path), tmp_path / "seen", tmp_path / "sglang"
    program.write_text(PROGRAM.format(flag=FLAG, seen=seen))
    program.chmod(0o755)
    home.configure(TABLE + f'program = ["{program}"]\n')
    try:
        home.run("up", "coder", code=None)
    finally:
        home.end()
    assert json.loads(seen.read_text()) == json.loads(TIERS)


def test_what_is_printed_to_be_run_names_a_file_that_is_there(home: Home) -> None:
    home.configure(TABLE + f'program = ["{sys.executable}", "-m", "sglang.launch_server"]\n')
    said = home.run("plan", "coder", "--render", "argv").stdout
    [file] = home.paths.plan_files.iterdir()
    assert f"{FLAG} {file}" in said
    assert json.loads(file.read_text()) == json.loads(TIERS)


@pytest.mark.parametrize(("form", "mount"), [("docker", "source={0},target={0},readonly"), ("quadlet", "Volume={0}:{0}:ro")])
def test_a_printed_container_sees_the_file(home: Home, form: str, mount: str) -> None:
    home.configure(TABLE + 'image = "lmsysorg/sglang:v0.5.16"\n')
    said = home.run("plan", "coder", "--render", form).stdout
    [file] = home.paths.plan_files.iterdir()
    assert mount.format(file) in said


def test_without_a_place_for_the_file_nothing_is_printed(home: Home) -> None:
    home.configure(TABLE + 'image = "lmsysorg/sglang:v0.5.16"\n')
    home.paths.state.write_text("no folder")
    assert "cannot be written" in home.run("plan", "coder", "--render", "docker", code=3).stderr


def test_a_folder_that_takes_no_file_is_said_and_a_file_that_is_there_is_enough(home: Home) -> None:
    home.configure(TABLE + 'image = "lmsysorg/sglang:v0.5.16"\n')
    make_state_folder(home.paths)
    home.paths.plan_files.write_text("no folder")
    refused = home.run("plan", "coder", "--render", "docker", code=3).stderr
    assert "the engine reads a file from there" in refused
    assert "STOKER_STATE" in refused
    home.paths.plan_files.unlink()
    write_beside(tiered(), home.paths.plan_files)
    [file] = home.paths.plan_files.iterdir()
    before = file.stat().st_mtime_ns
    write_beside(tiered(), home.paths.plan_files)
    assert file.stat().st_mtime_ns == before


def test_what_is_printed_for_another_machine_writes_nothing_here(home: Home) -> None:
    home.configure(TABLE + 'image = "lmsysorg/sglang:v0.5.16"\n')
    refused = home.run("plan", "coder", "--on", "gb10", "--render", "docker", code=3).stderr
    assert "is a file beside the engine" in refused
    assert not home.paths.plan_files.exists()
