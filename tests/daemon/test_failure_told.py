"""Why a service failed is told without being asked, of the launch that failed and of no other."""

from __future__ import annotations

from fake_engine import Script, write_fake_engine
from home import Home

TAKEN = "OSError: [Errno 98] Address already in use"
SENTENCE = "The engine's port is taken by another program (certain; rule port-taken)"


def test_a_failed_start_is_explained_by_up_and_by_status(home: Home) -> None:
    home.add_fake("late", dies="loading", prints=TAKEN)
    said = home.run("up", "late", code=1).stderr
    assert f"late is FAILED: the engine ended (exit code 7): {SENTENCE}" in said
    assert "`stoker diagnose late`" in said
    assert SENTENCE in home.run("status").stdout
    assert home.json("diagnose", "late")["findings"][0]["rule"] == "port-taken"
    assert f"why=the engine ended (exit code 7): {SENTENCE}" in home.paths.daemon_log.read_text()


def test_what_a_former_launch_said_explains_nothing_of_the_next(home: Home) -> None:
    folder = home.add_fake("late", dies="loading", prints=TAKEN)
    home.run("up", "late", code=1)
    write_fake_engine(folder, Script(dies="loading", prints="reading weights"))
    home.run("up", "late", code=1)
    assert home.service("late").why == "the engine ended (exit code 7): no rule explains it; it said: reading weights"
    assert home.json("diagnose", "late")["findings"] == []
    assert "of 2 starts" in home.run("diagnose", "late").stdout


def test_an_engine_that_said_nothing_is_not_asked_about(home: Home) -> None:
    home.add_fake("mute", dies="loading")
    home.run("up", "mute", code=1)
    assert home.service("mute").why == "the engine ended (exit code 7)"
