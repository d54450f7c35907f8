"""A refused wish leaves nothing behind that nobody asked for."""

from __future__ import annotations

import pytest

from home import Home


@pytest.mark.parametrize("verb", ["up", "switch"])
def test_a_daemon_that_was_started_for_what_is_refused_is_ended_again(home: Home, verb: str) -> None:
    home.configure('[service.coder]\nmodel = "nothing-here.gguf"\n')
    home.run(verb, "coder", code=3)
    assert home.daemon_pid is None


def test_a_daemon_that_ran_before_goes_on(demo: Home) -> None:
    pid = demo.daemon_pid
    demo.run("up", "/nonexistent/model.gguf", code=3)
    assert demo.daemon_pid == pid


def test_a_daemon_that_took_an_engine_back_goes_on(home: Home) -> None:
    home.run("up")
    home.kill_daemon()
    home.run("up", "/nonexistent/model.gguf", code=3)
    assert home.daemon_answers
    assert home.engines()


def test_a_process_that_cannot_be_adopted_leaves_no_daemon(home: Home) -> None:
    home.run("adopt", "1", code=None)
    assert home.daemon_pid is None
