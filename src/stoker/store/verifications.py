"""What was found out about each service the last times that it was proved; the oldest are forgotten."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.records import CheckResult, KeptVerification, Verdict, Verification
from stoker.store.database import broken, read_rows
from stoker.store.last_rows import KEPT, LastRows

# A check that waits for something asks many times; it was judged by the last of them.
MOST_EXCHANGES = 8


class VerificationStore(LastRows):
    """Keeps verifications, with the exchanges of the checks that did not pass."""

    INSERT = "INSERT INTO verifications (service, plan_id, occasion, begun, passed, saved) VALUES (?, ?, ?, ?, ?, ?)"
    FORGET_OLD = """
    DELETE FROM verifications WHERE service = ? AND id NOT IN
        (SELECT id FROM verifications WHERE service = ? ORDER BY id DESC LIMIT ?)
    """
    FORGET = "DELETE FROM verifications WHERE service = ?"

    def write(self, kept: KeptVerification) -> None:
        """Writes one and forgets all but the service's last ones; raises StokerError where the disk is full."""
        bounded = msgspec.structs.replace(kept, verification=bound(kept.verification))
        saved = msgspec.json.encode(bounded).decode()
        row = (kept.service, kept.plan_id, kept.occasion, kept.verification.begun, int(kept.passed), saved)
        self.add(kept.service, row)


READ = "SELECT saved FROM verifications WHERE service = ? ORDER BY id DESC LIMIT ?"
LAST_IDS = "SELECT service, max(id) FROM verifications GROUP BY service"
ONE = "SELECT saved FROM verifications WHERE id = ?"
SERVICES = "SELECT service FROM verifications GROUP BY service ORDER BY max(id) DESC"
GATES = "SELECT plan_id, passed FROM verifications WHERE service = ? AND occasion = 'gate' ORDER BY id"


def read_verifications(file: Path, service: str, most: int = KEPT) -> list[KeptVerification]:
    """Returns a service's verifications, the last first, without changing the file; raises StokerError."""
    rows = read_rows(file, READ, (service, most))
    try:
        return [msgspec.json.decode(saved, type=KeptVerification) for (saved,) in rows]
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def read_last_ids(file: Path) -> dict[str, int]:
    """Returns the number of each service's last verification; one that was never proved has none. Raises StokerError."""
    return dict(read_rows(file, LAST_IDS, ()))


def read_verification(file: Path, number: int) -> KeptVerification | None:
    """Returns one verification; None where it is kept no more. Raises StokerError."""
    try:
        return next(
            (msgspec.json.decode(saved, type=KeptVerification) for (saved,) in read_rows(file, ONE, (number,))), None
        )
    except msgspec.MsgspecError as problem:
        raise broken(file, problem) from problem


def read_verified(file: Path) -> list[str]:
    """Returns the names of the services of which verifications are kept, the one that was proved last first."""
    return [name for (name,) in read_rows(file, SERVICES)]


def read_passed(file: Path, service: str) -> frozenset[str]:
    """Returns the plans of a service that passed their gate the last time that they stood before it."""
    last = dict(read_rows(file, GATES, (service,)))
    return frozenset(plan_id for plan_id, passed in last.items() if passed)


def bound(view: Verification) -> Verification:
    """Returns a verification with the exchanges that are worth their room."""
    probes = (
        msgspec.structs.replace(probe, checks=tuple(_bound_check(check) for check in probe.checks)) for probe in view.probes
    )
    return msgspec.structs.replace(view, probes=tuple(probes))


def _bound_check(check: CheckResult) -> CheckResult:
    kept = () if check.verdict is Verdict.PASS else check.exchanges[-MOST_EXCHANGES:]
    return msgspec.structs.replace(check, exchanges=kept)
