"""What was asked of an endpoint to prove it, what came back, and what is thought of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from stoker.records.base import Record


class Verdict(StrEnum):
    """What is thought of an endpoint.

    DEGRADED: clients are served, with less than they expect. NOT_OFFERED: it says that it cannot. UNKNOWN: nobody can tell.
    """

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    DEGRADED = "degraded"
    NOT_OFFERED = "not offered"
    UNKNOWN = "unknown"


# Of several verdicts the first of these that is among them counts.
WORST_FIRST = (Verdict.FAIL, Verdict.DEGRADED, Verdict.UNKNOWN, Verdict.PASS, Verdict.NOT_OFFERED)


class Target(Record, frozen=True):
    """An endpoint to be proved: its address (with `/v1`), the model to name, and the key it wants.

    `engine_url` (without `/v1`) is the engine that should serve, where that can be asked past what stands in front of it.
    `context_tokens` and `parallel` are what it was planned for; None: nobody knows. `on_purpose`: it is meant to be reached
    from other machines. `box`: the door at the address shall ask that box alone, by `x-stoker-box`.
    """

    url: str
    model: str
    key: str | None = None
    engine_url: str | None = None
    engine_key: str | None = None
    context_tokens: int | None = None
    parallel: int | None = None
    on_purpose: bool = False
    box: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What each request says besides its key."""
        return {} if self.box is None else {"x-stoker-box": self.box}


class Exchange(Record, frozen=True):
    """A request and what came back, bounded and without secrets, so that it can be kept and replayed.

    `problem` is what went wrong below HTTP's own errors; `status` None: no answer began. Times count from the request.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str
    status: int | None
    reply_headers: tuple[tuple[str, str], ...]
    reply: str
    took_s: float
    first_byte_s: float | None = None
    problem: str = ""


class CheckResult(Record, frozen=True):
    """One check of a probe: what was found, how to mend it, and the exchanges that show it."""

    name: str
    verdict: Verdict
    says: str
    mend: str = ""
    exchanges: tuple[Exchange, ...] = ()


class ProbeResult(Record, frozen=True):
    """A probe and its checks; its verdict is the worst of theirs."""

    name: str
    verdict: Verdict
    took_s: float
    checks: tuple[CheckResult, ...]


class Verification(Record, frozen=True):
    """An endpoint and everything that was found out about it; `begun` is in seconds since the epoch.

    `engine` is what it is by its own metrics, None where it does not tell. `in_time`: all could be asked in `budget_s`.
    `box`: the linked box that answered, through the door at the address.
    """

    url: str
    model: str
    engine: str | None
    begun: float
    took_s: float
    budget_s: float
    in_time: bool
    verdict: Verdict
    probes: tuple[ProbeResult, ...]
    box: str | None = None


Occasion = Literal["gate", "verify"]


class KeptVerification(Record, frozen=True):
    """A verification of a service as the store keeps it: by which plan it ran then, and who asked.

    `gate`: it decided whether the service became READY, and `required` are the probes that had to pass; `verify`: a person
    asked, and `required` are those that had to be offered.
    """

    service: str
    plan_id: str
    engine: str
    engine_version: str | None
    occasion: Occasion
    required: tuple[str, ...]
    verification: Verification

    @property
    def passed(self) -> bool:
        """Tells whether everything could be asked and nothing failed."""
        return self.verification.in_time and self.verification.verdict is not Verdict.FAIL


def worst(verdicts: list[Verdict]) -> Verdict:
    """Returns the verdict that counts among several; UNKNOWN among none."""
    return next((one for one in WORST_FIRST if one in verdicts), Verdict.UNKNOWN)
