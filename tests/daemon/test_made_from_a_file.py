"""A service that was made from a file, with the real engine: it is known by its name until it is forgotten."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from home import Home
from stoker.config import demo_model
from stoker.records import State


@pytest.fixture
def file(home: Home, tmp_path: Path) -> Path:
    """A model of the user's, which was served and is down again, as is the daemon."""
    model = tmp_path / "mine.gguf"
    shutil.copy(demo_model(), model)
    home.run("up", str(model), "--context", "1024")
    home.run("down")
    return model


def test_it_is_started_again_by_its_name_as_it_was(home: Home, file: Path) -> None:
    was = home.json("status")["services"][0]
    assert (was["name"], was["state"]) == ("mine", "STOPPED")
    home.run("up", "mine")
    again = home.service("mine")
    assert (again.state, again.plan_id) == (State.READY, was["plan_id"])
    home.run("down", "mine")
    home.run("switch", "mine")
    assert home.service("mine").state is State.READY


def test_options_would_change_it_so_its_file_has_to_be_named(home: Home, file: Path) -> None:
    said = home.run("up", "mine", "--context", "512", code=2).stderr
    assert "mine is started as it was the last time" in said
    assert "stoker up MODEL --name mine --context" in said


def test_one_whose_file_changed_is_told_to_be_named_by_it(home: Home, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-4096])
    said = home.run("up", "mine", code=3).stderr
    assert f"{file} is not the file that was planned for" in said
    assert "`stoker up MODEL`" in said


def test_a_name_that_was_forgotten_is_unknown_again(home: Home, file: Path) -> None:
    home.run("up", "mine")
    home.run("down", "mine", "--forget")
    assert "there is no service called `mine`" in home.run("up", "mine", code=2).stderr
