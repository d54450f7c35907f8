"""Join codes, and the addresses that go with them."""

from __future__ import annotations

import pytest

from stoker.errors import Refused, WrongUse
from stoker.flows.boxes.codes import GOOD_S, MOST_WRONG, Codes, read_code, render_code
from stoker.flows.boxes.joining import read_address

PIN = "ab" * 32


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def refusal(codes: Codes, secret: str) -> str:
    with pytest.raises(Refused) as told:
        codes.take(secret)
    assert "stoker boxes code" in told.value.next_step
    return told.value.what


def test_a_code_is_read_as_a_person_may_have_copied_it() -> None:
    code = render_code(PIN, "0011223344556677")
    assert len(code.split("-")) == 8
    for copied in (code, code.lower(), code.replace("-", " "), f" {code}\n", code.replace("-", "")):
        read = read_code(copied)
        assert PIN.startswith(read.pin)
        assert (len(read.pin), read.secret) == (24, "0011223344556677")


@pytest.mark.parametrize("text", ["", "ABCD", "!!!!-AAAA", "A" * 33, "1" * 32])
def test_what_is_no_code_is_wrong_use(text: str) -> None:
    with pytest.raises(WrongUse):
        read_code(text)


def test_a_code_is_good_once() -> None:
    codes = Codes()
    secret = codes.make(may_act=True)
    assert codes.take(secret) is True
    assert refusal(codes, secret) == "this join code was used already"


def test_a_code_expires_by_a_clock_that_nobody_sets() -> None:
    clock = Clock()
    codes = Codes(clock)
    secret = codes.make(may_act=False)
    clock.now += GOOD_S
    assert refusal(codes, secret) == "the join code has expired"


def test_a_few_wrong_codes_end_the_right_one() -> None:
    codes = Codes()
    secret = codes.make(may_act=False)
    for _ in range(MOST_WRONG):
        assert refusal(codes, "00" * 8) == "the join code is wrong"
    assert refusal(codes, secret) == "there is no join code here"


def test_a_new_code_ends_the_one_before() -> None:
    codes = Codes()
    before, now = codes.make(may_act=False), codes.make(may_act=False)
    assert refusal(codes, before) == "the join code is wrong"
    assert codes.take(now) is False


@pytest.mark.parametrize("url", ["http://10.0.0.2:8701", "ftp://x", "https://", "https://x:port", "https://x/path"])
def test_only_a_boxs_tls_address_is_one(url: str) -> None:
    with pytest.raises(WrongUse):
        read_address(url)
    assert read_address("10.0.0.2") == read_address("https://10.0.0.2/") == ("10.0.0.2", 8701)
