"""What was found out about services: kept with their plans, bounded, and readable without a daemon."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stoker.errors import StokerError
from stoker.records import CheckResult, Exchange, KeptVerification, Occasion, ProbeResult, Verdict, Verification, worst
from stoker.store.last_rows import KEPT
from stoker.store.verifications import (
    MOST_EXCHANGES,
    VerificationStore,
    read_last_ids,
    read_passed,
    read_verification,
    read_verifications,
    read_verified,
)
from support import fails

ASKED = Exchange("POST", "http://e/v1", (("authorization", "Bearer $STOKER_KEY"),), "{}", 200, (), "reply", 0.1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stoker.db"


@pytest.fixture
def store(file: Path) -> Iterator[VerificationStore]:
    with closing(VerificationStore(file)) as store:
        yield store


def make_kept(
    verdict: Verdict = Verdict.PASS, *, service: str = "coder", plan_id: str = "p1", occasion: Occasion = "gate",
    begun: float = 1.0, in_time: bool = True, exchanges: int = 1,
) -> KeptVerification:  # fmt: skip
    """Returns a verification of one check that passed, and one with this verdict."""
    asked = (ASKED,) * exchanges
    checks = (
        CheckResult("first", Verdict.PASS, "well", exchanges=asked),
        CheckResult("second", verdict, "so", "mend", asked),
    )
    whole = worst([Verdict.PASS, verdict])
    view = Verification("u", "m", "vllm", begun, 2.0, 60.0, in_time, whole, (ProbeResult("tools", whole, 2.0, checks),))
    return KeptVerification(service, plan_id, "vllm", "0.32.0", occasion, ("tools",), view)


def test_what_failed_is_kept_with_what_was_asked_and_what_passed_without(store: VerificationStore, file: Path) -> None:
    store.write(make_kept(Verdict.FAIL))
    [kept] = read_verifications(file, "coder")
    assert (kept.plan_id, kept.engine_version, kept.occasion, kept.required) == ("p1", "0.32.0", "gate", ("tools",))
    [first, second] = kept.verification.probes[0].checks
    assert (first.says, first.exchanges) == ("well", ())
    assert (second.verdict, second.says, second.mend, second.exchanges) == (Verdict.FAIL, "so", "mend", (ASKED,))


def test_a_check_that_asked_many_times_keeps_its_last_exchanges(store: VerificationStore, file: Path) -> None:
    store.write(make_kept(Verdict.UNKNOWN, exchanges=60))
    [kept] = read_verifications(file, "coder")
    assert len(kept.verification.probes[0].checks[1].exchanges) == MOST_EXCHANGES


def test_the_last_comes_first_and_old_ones_are_forgotten(store: VerificationStore, file: Path) -> None:
    store.write(make_kept(service="other"))
    for number in range(KEPT + 3):
        store.write(make_kept(begun=float(number)))
    begun = [kept.verification.begun for kept in read_verifications(file, "coder")]
    assert begun == [float(number) for number in reversed(range(3, KEPT + 3))]
    assert len(read_verifications(file, "coder", most=1)) == 1
    assert read_verified(file) == ["coder", "other"]


def test_a_new_verification_has_another_number(store: VerificationStore, file: Path) -> None:
    store.write(make_kept(begun=1.0))
    store.write(make_kept(service="other"))
    before = read_last_ids(file)
    store.write(make_kept(begun=2.0))
    after = read_last_ids(file)
    assert before.keys() == {"coder", "other"}
    assert [name for name in before if after[name] == before[name]] == ["other"]
    kept = read_verification(file, after["coder"])
    assert kept is not None
    assert kept.verification.begun == 2.0
    store.forget("coder")
    assert read_verification(file, after["coder"]) is None


def test_a_forgotten_service_has_none(store: VerificationStore, file: Path) -> None:
    store.write(make_kept())
    store.forget("coder")
    assert read_verified(file) == []


def test_what_worked_last_is_what_its_gate_said_last(store: VerificationStore, file: Path) -> None:
    for kept in (
        make_kept(plan_id="well"),
        make_kept(Verdict.DEGRADED, plan_id="well enough"),
        make_kept(plan_id="no longer"),
        make_kept(Verdict.FAIL, plan_id="no longer"),
        make_kept(plan_id="late", in_time=False),
        make_kept(Verdict.FAIL, plan_id="mended"),
        make_kept(plan_id="mended"),
        make_kept(plan_id="by hand", occasion="verify"),
        make_kept(Verdict.FAIL, plan_id="well", occasion="verify"),
        make_kept(plan_id="another's", service="other"),
    ):
        store.write(kept)
    assert read_passed(file, "coder") == {"well", "well enough", "mended"}


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    assert read_verifications(tmp_path / "none.db", "coder") == []
    assert read_passed(tmp_path / "none.db", "coder") == frozenset()


def test_a_row_that_cannot_be_read_names_the_file(store: VerificationStore, file: Path) -> None:
    store.write(make_kept())
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE verifications SET saved = 'x'")
    with fails(StokerError, f"{file} cannot be used"):
        read_verifications(file, "coder")
