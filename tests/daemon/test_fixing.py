"""A fix is tried through the gate and written only once it is READY; else everything is as it was before."""

from __future__ import annotations

import tomllib

from home import Home
from stoker.records import State

VARIABLE = "TORCHINDUCTOR_AUTOGRAD_CACHE"
PICKLING = "_pickle.PicklingError: Can't pickle <function> while storing AOTAutograd cache"


def table_of(home: Home, name: str) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads(home.paths.config.read_text())["service"][name]
    return table


def test_a_fix_is_shown_then_tried_then_written_down(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING, needs=VARIABLE)
    home.run("up", "coder", code=1)
    before = home.paths.config.read_text()
    said = home.run("diagnose", "coder", "--apply", input="n\n", code=1).stdout
    assert f"+ ${VARIABLE} 0" in said
    assert f'+ environment = {{ {VARIABLE} = "0" }}' in said
    assert (home.paths.config.read_text(), home.service("coder").state) == (before, State.FAILED)
    home.run("diagnose", "coder", "--apply", input="y\n")
    assert home.service("coder").state is State.READY
    assert table_of(home, "coder")["environment"] == {VARIABLE: "0"}
    assert "# fix of aot-autograd-pickling: " in home.paths.config.read_text()
    [backup] = home.folder.glob("stoker.toml.before-*")
    assert backup.read_text() == before
    home.run("down", "coder")
    home.run("up", "coder")


def test_what_ran_before_runs_again_where_the_fix_does_not_help(home: Home) -> None:
    home.configure(limits="switch_cooldown_s = 0")
    home.add_fake("chat", 'group = "one"')
    home.add_fake("coder", 'group = "one"', dies="loading", prints=PICKLING)
    home.run("up", "coder", code=1)
    home.run("up", "chat")
    before = home.paths.config.read_text()
    said = home.run("diagnose", "coder", "--apply", "--yes", code=1)
    assert "coder did not take its place" in said.stderr
    assert home.service("chat").state is State.READY
    assert home.paths.config.read_text() == before


def test_a_fault_that_no_setting_mends_is_left_with_its_advice(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints="OSError: [Errno 98] Address already in use")
    home.run("up", "coder", code=1)
    said = home.run("diagnose", "coder", "--apply", "--yes", code=3).stderr
    assert "no setting of the service mends this: The engine's port is taken" in said
    assert "rule: port-taken" in said


def test_a_service_that_stands_in_no_file_is_told_what_to_say(home: Home) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING)
    home.run("up", "coder", code=1)
    home.configure()
    said = home.run("diagnose", "coder", "--apply", "--yes", code=3).stderr
    assert "coder is no service of stoker.toml" in said
    assert f"${VARIABLE} 0" in said


def test_only_a_service_can_be_changed(home: Home) -> None:
    assert "for a service alone" in home.run("diagnose", "coder", "--apply", "--json", code=2).stderr
    assert "there are no logs yet" in home.run("diagnose", "coder", "--apply", code=2).stderr
