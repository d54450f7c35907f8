"""Which content everything was that ran on a service: one, or nobody can say."""

from __future__ import annotations

import pytest

from stoker.gateway.contents import Contents
from stoker.gateway.exchange import Request

PATH = "/v1/chat/completions"


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def saying(content: bytes | None) -> Request:
    headers = [] if content is None else [(b"x-stoker-content", content)]
    return Request("POST", PATH, b"", headers, b"{}", "1.1", True)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def contents(clock: Clock) -> Contents:
    return Contents(("code", "prose"), clock)


def run(contents: Contents, content: bytes | None, service: str = "coder") -> None:
    contents.end(service, contents.begin(service, saying(content)))


def test_requests_of_one_content_are_of_that_while_they_run_and_since_they_ran(contents: Contents, clock: Clock) -> None:
    assert contents.only("coder", 0.0) is None
    begun = contents.begin("coder", saying(b"code"))
    assert contents.only("coder", 1000.0) == "code"
    contents.end("coder", begun)
    clock.now += 10
    assert contents.only("coder", 100.0) == "code"
    assert contents.only("coder", 101.0) is None


def test_two_contents_in_one_stretch_are_neither(contents: Contents, clock: Clock) -> None:
    run(contents, b"code")
    clock.now += 10
    begun = contents.begin("coder", saying(b"prose"))
    assert contents.only("coder", 100.0) is None
    assert contents.only("coder", 101.0) == "prose"
    run(contents, b"code")
    assert contents.only("coder", 101.0) is None
    contents.end("coder", begun)


@pytest.mark.parametrize("said", [None, b"", b"poetry", b"CODE", b"code, prose"])
def test_what_has_no_name_here_is_unsaid_and_spoils_what_ran_beside_it(contents: Contents, said: bytes | None) -> None:
    run(contents, said)
    assert contents.only("coder", 0.0) is None
    run(contents, b"code")
    assert contents.only("coder", 0.0) is None


def test_services_are_apart(contents: Contents) -> None:
    run(contents, b"code")
    run(contents, b"prose", "writer")
    assert (contents.only("coder", 0.0), contents.only("writer", 0.0)) == ("code", "prose")


def test_nothing_is_remembered_where_no_content_has_a_name() -> None:
    contents = Contents(())
    assert contents.begin("coder", saying(b"code")) is None
    contents.end("coder", None)
    assert contents.only("coder", 0.0) is None
