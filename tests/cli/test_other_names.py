"""A service and its model may have two names: whoever says the one where the other is meant is told so."""

from __future__ import annotations

import pytest

from home import Home
from stoker.errors import StokerError, model_hint, service_hint

MODELS = {"demo": "stoker-demo", "coder": "coder", "tool": None}
IS_MODEL = "stoker-demo is the model of service demo"


@pytest.mark.parametrize(
    ("words", "code", "next_step"),
    [
        (("down", "stoker-demo"), 2, "stoker down demo"),
        (("logs", "stoker-demo"), 2, "stoker logs demo"),
        (("diagnose", "stoker-demo"), 2, "stoker diagnose demo"),
        (("timeline", "stoker-demo"), 2, "stoker timeline demo"),
        (("history", "stoker-demo"), 2, "stoker history demo"),
        (("rollback", "stoker-demo"), 2, "stoker rollback demo"),
        (("tune", "stoker-demo"), 2, "stoker tune demo"),
        (("verify", "stoker-demo"), 3, "name demo"),
        (("up", "stoker-demo"), 2, "name demo"),
        (("ask", "--model", "demo", "hi"), 2, "stoker ask --model stoker-demo"),
        (("clients", "config", "curl", "--model", "demo"), 2, "--model stoker-demo"),
    ],
)  # fmt: skip
def test_the_other_name_is_told_with_what_to_say(demo: Home, words: tuple[str, ...], code: int, next_step: str) -> None:
    assert f"next: {IS_MODEL}: {next_step}" in demo.run(*words, code=code).stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ask", "--model", "nothing", "hi"), 1, "next: name one of these, or `stoker up` serves another"),
        (("verify", "nothing"), 3, "there is no service called `nothing`"),
        (("import", "nothing.yaml"), 2, "next: name a file that is here"),
        (("fetch", "nothing"), 2, "next: name a hub repository `org/name`"),
    ],
)
def test_a_name_that_nothing_has_is_answered_with_what_to_do(
    demo: Home, words: tuple[str, ...], code: int, said: str
) -> None:
    assert said in demo.run(*words, code=code).stderr


def test_without_a_daemon_down_tells_it_too(home: Home) -> None:
    home.run("up")
    home.run("down")
    assert f"{IS_MODEL}: stoker down demo" in home.run("down", "stoker-demo", code=2).stderr


def test_the_gateway_tells_it_to_every_client(demo: Home) -> None:
    with pytest.raises(StokerError, match="`stoker-demo` is the model of service `demo`"):
        list(demo.daemon.stream("POST", "/v1/chat/completions", {"model": "demo", "messages": []}))


def test_a_mistyped_name_is_answered_with_its_neighbour_and_another_with_what_there_is() -> None:
    assert service_hint("codr", MODELS, "none") == "did you mean `coder`?"
    assert service_hint("voice", MODELS, "services here: demo") == "services here: demo"
    assert model_hint("stoker-dem", MODELS, "none") == "did you mean `stoker-demo`?"
    assert model_hint("tool", MODELS, "none") == "none"
