"""Sessions of the dashboard: by a cookie and a word, for a while, of this page alone; and only digests are kept."""

from __future__ import annotations

import pytest

from stoker.gateway.exchange import Request
from stoker.gateway.keyring import Denial
from stoker.gateway.sessions import BROWSER, LASTS_S, Opened, Sessions
from stoker.records.dashboard import SavedSession

KEY = "sk-control"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


def ask(http: str = "POST", **headers: str | bytes) -> Request:
    """Returns a request that a browser sends from this page, but for the headers given; an empty one is left out."""
    usual = {"host": "127.0.0.1:8700", "origin": "http://127.0.0.1:8700", "sec-fetch-site": "same-origin"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    said = [(name, value if isinstance(value, bytes) else value.encode()) for name, value in {**usual, **given}.items()]
    return Request(http, "/api/x", b"", [(name.encode(), value) for name, value in said if value], b"", "1.1", True)


def shown(opened: Opened) -> bytes:
    """Returns what a browser sends of a cookie."""
    return b"other=1; " + opened.cookie.partition(b";")[0] + b"; more=2"


def code_of(who: object) -> str:
    assert isinstance(who, Denial), who
    return who.code


def test_the_page_may_do_everything_with_cookie_and_word() -> None:
    sessions = Sessions(KEY)
    opened = sessions.open()
    assert sessions.who(ask(cookie=shown(opened), x_stoker_word=opened.word)) is BROWSER
    assert sessions.who(ask("GET", cookie=shown(opened), origin="")) is BROWSER


def test_a_request_without_a_cookie_is_somebody_elses_to_judge() -> None:
    assert Sessions(KEY).who(ask(x_stoker_word="w")) is None
    assert Sessions(KEY).who(ask(cookie="stoker-ffffffffffff=x")) is None  # another Stoker's, on the same host


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"x_stoker_word": ""}, "no_word"),
        ({"x_stoker_word": "guess"}, "no_word"),
        ({"origin": ""}, "foreign_origin"),
        ({"origin": "null"}, "foreign_origin"),
        ({"origin": "http://127.0.0.1:3000"}, "foreign_origin"),  # another program of this machine
        ({"origin": "http://evil.example"}, "foreign_origin"),
        ({"sec_fetch_site": "same-site"}, "foreign_origin"),
        ({"sec_fetch_site": "cross-site"}, "foreign_origin"),
    ],
)
def test_nobody_else_changes_anything_with_the_cookie(wrong: dict[str, str], code: str) -> None:
    sessions = Sessions(KEY)
    opened = sessions.open()
    right: dict[str, str] = {"cookie": shown(opened).decode(), "x_stoker_word": opened.word}
    assert code_of(sessions.who(ask(**{**right, **wrong}))) == code


def test_another_ports_page_does_not_even_read() -> None:
    sessions = Sessions(KEY)
    cookie = shown(sessions.open())
    assert code_of(sessions.who(ask("GET", cookie=cookie, sec_fetch_site="same-site"))) == "foreign_origin"


def test_the_cookie_is_for_this_page_and_no_script() -> None:
    plain, by_tls = (Sessions(KEY, by_tls=by_tls).open().cookie for by_tls in (False, True))
    assert {b"HttpOnly", b"SameSite=Strict", b"Path=/"} <= set(plain.split(b"; "))
    assert b"Secure" not in plain.split(b"; ")
    assert b"Secure" in by_tls.split(b"; ")


def test_a_session_ends_after_a_week_and_by_logging_out() -> None:
    clock = Clock()
    sessions = Sessions(KEY, wall=clock)
    first, second = sessions.open(), sessions.open()
    assert b"Max-Age=0" in sessions.close(ask("DELETE", cookie=shown(first)))
    assert code_of(sessions.who(ask("GET", cookie=shown(first)))) == "session_over"
    clock.at += LASTS_S - 1
    assert sessions.who(ask("GET", cookie=shown(second))) is BROWSER
    clock.at += 1
    assert code_of(sessions.who(ask("GET", cookie=shown(second)))) == "session_over"


def test_a_next_daemon_knows_it_by_digests_alone_and_with_the_same_key() -> None:
    kept: list[SavedSession] = []

    def keep(sessions: list[SavedSession]) -> None:
        kept[:] = sessions

    opened = Sessions(KEY, keep=keep).open()
    request = ask(cookie=shown(opened), x_stoker_word=opened.word)
    assert Sessions(KEY, kept).who(request) is BROWSER
    assert Sessions("sk-another", kept).who(request) is None
    cookie = opened.cookie.partition(b";")[0].partition(b"=")[2].decode()
    assert cookie not in repr(kept)
    assert opened.word not in repr(kept)


def test_one_that_looks_on_changes_nothing() -> None:
    for sessions, looks_on in ((Sessions(KEY), True), (Sessions(KEY, reads_only=True), False)):
        opened = sessions.open(looks_on=looks_on)
        assert sessions.who(ask("GET", cookie=shown(opened))) is BROWSER
        assert code_of(sessions.who(ask(cookie=shown(opened), x_stoker_word=opened.word))) == "read_only"


def test_a_session_from_before_the_daemon_was_told_to_look_on_looks_on_too() -> None:
    kept: list[SavedSession] = []
    opened = Sessions(KEY, keep=kept.extend).open()
    after = Sessions(KEY, kept, reads_only=True)
    assert code_of(after.who(ask(cookie=shown(opened), x_stoker_word=opened.word))) == "read_only"
