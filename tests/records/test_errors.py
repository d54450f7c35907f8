"""The errors a person meets, and the rule that records never change."""

from __future__ import annotations

import msgspec
import pytest

from stoker.errors import BY_EXIT_CODE, NotReadyInTime, Refused, StokerError, WrongUse
from stoker.records import Handle, SavedService, Service, Setting, State, Wish
from support import make_plan, make_wish


def test_an_error_is_a_sentence_then_its_reason_and_next_step_a_line_each() -> None:
    error = Refused("it does not fit", why="70 GiB needed", next_step="stop the other one", rule="gb10-memory")
    assert str(error) == "it does not fit\n  why: 70 GiB needed\n  next: stop the other one\n  rule: gb10-memory"


def test_what_an_error_does_not_know_is_left_out() -> None:
    assert str(StokerError("it broke")) == "it broke"
    assert str(StokerError("it broke", next_step="try again")) == "it broke\n  next: try again"


@pytest.mark.parametrize(("kind", "code"), [(StokerError, 1), (WrongUse, 2), (Refused, 3), (NotReadyInTime, 4)])
def test_each_kind_of_error_has_an_exit_code_of_its_own(kind: type[StokerError], code: int) -> None:
    assert kind("x").exit_code == code
    assert BY_EXIT_CODE[code] is kind


def test_a_record_cannot_be_changed() -> None:
    wish = make_wish()
    with pytest.raises(AttributeError):
        wish.context = 5  # type: ignore[misc]


def test_a_record_with_an_unknown_field_is_not_read() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.json.decode(b'{"name":"a","model":"b","colour":"red"}', type=Wish)


def test_a_saved_service_survives_json_with_every_setting_type() -> None:
    plan = make_plan(Setting("a", 1, "x"), Setting("b", 0.5, "x"), Setting("c", "text", "x"), Setting("d", True, "x"))
    saved = SavedService(
        plan,
        Service(State.BACKOFF, 1.5, "why", True, 3, True, State.FAILED, "then", 4, 1, (1.0, 2.0)),
        Handle(3, "i/s/3", 17, 123456, "boot", 8001, 10, 5),
    )
    assert msgspec.json.decode(msgspec.json.encode(saved), type=SavedService) == saved
