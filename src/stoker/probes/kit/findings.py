"""What a check finds, and what it may raise where there is nothing to judge."""

from __future__ import annotations

from typing import NamedTuple

from stoker.records import Verdict


class Finding(NamedTuple):
    """A verdict, what was seen in words for people, and what to do about it."""

    verdict: Verdict
    says: str
    mend: str = ""


def passed(says: str) -> Finding:
    """Returns that it is as it should be."""
    return Finding(Verdict.PASS, says)


def failed(says: str, mend: str = "") -> Finding:
    """Returns that clients will be harmed."""
    return Finding(Verdict.FAIL, says, mend)


def degraded(says: str, mend: str = "") -> Finding:
    """Returns that clients are served, with less than they expect."""
    return Finding(Verdict.DEGRADED, says, mend)


def not_offered(says: str, mend: str = "") -> Finding:
    """Returns that the endpoint says openly that it cannot."""
    return Finding(Verdict.NOT_OFFERED, says, mend)


def unknown(says: str, mend: str = "") -> Finding:
    """Returns that nobody could tell."""
    return Finding(Verdict.UNKNOWN, says, mend)


class Trouble(Exception):
    """No answer came that could be judged; what came instead is a failure, and says what to do."""

    def __init__(self, says: str, mend: str = "") -> None:
        super().__init__(says)
        self.says = says
        self.mend = mend


class Declined(Trouble):
    """The endpoint answered a request with an HTTP error; `message` is its own word."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message


class OutOfTime(Exception):
    """The budget of the whole run is over."""
