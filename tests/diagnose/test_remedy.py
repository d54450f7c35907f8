"""A finding becomes a changed wish, or is refused with what to do instead."""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
import pytest

from stoker.diagnose.remedy import changed_wish, choose_cause
from stoker.errors import Refused
from stoker.flows.diagnose import Known, diagnose_source
from stoker.flows.fixing import write_wish
from stoker.records import Cause, Diagnosis, Wish
from support import fails

CAUSE = Cause("r", "It breaks", "certain", "since", "do it", (), (), "measured", "crash")
WISH = Wish(name="coder", model="m", context=4096, flags={"attention_backend": "flashinfer", "x": 1}, environment={"A": "1"})


def changed(wish: Wish = WISH, engine: str = "vllm", **cause: Any) -> Wish:
    return changed_wish(wish, msgspec.structs.replace(CAUSE, **cause), engine)


def test_a_flag_is_set_where_the_wish_has_it_already() -> None:
    assert changed(use={"--attention-backend": "triton"}).flags == {"attention_backend": "triton", "x": 1}
    assert changed(use={"--other": True}).flags == {**WISH.flags, "other": True}


def test_what_the_wish_says_by_a_name_of_its_own_is_said_so() -> None:
    assert changed(use={"--max-model-len": 2048}).context == 2048
    assert changed(drop=("--max-model-len",)).context is None
    assert changed(engine="sglang", use={"--context-length": 99}).context == 99


def test_a_variable_is_set_and_taken_out() -> None:
    assert changed(use={"$B": 0}).environment == {"A": "1", "B": "0"}
    assert changed(drop=("$A",)).environment == {}


def test_one_flag_may_take_the_place_of_another() -> None:
    assert changed(use={"--y": "2"}, drop=("--x",)).flags == {"attention_backend": "flashinfer", "y": "2"}


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ({"use": {"docker:ulimit": "nofile=9"}}, "docker:ulimit"),
        ({"use": {"unit:LimitMEMLOCK": "infinity", "--z": 1}}, "unit:LimitMEMLOCK"),
        ({"drop": ("--not-there",)}, "not among the flags of coder"),
    ],
)
def test_what_no_wish_can_say_is_refused(cause: dict[str, Any], said: str) -> None:
    with fails(Refused, said, "do it"):
        changed(**cause)
    with fails(Refused, "a command of yours"):
        changed(engine="command", use={"--x": 1})


def told(*findings: Cause) -> Diagnosis:
    return msgspec.structs.replace(diagnose_source(_Empty(), "coder", Known({})), findings=findings)


class _Empty:
    def read(self, size: int, /) -> bytes:
        return b""


def test_nothing_is_changed_on_a_guess() -> None:
    with fails(Refused, "no rule explains"):
        choose_cause(told())
    guess = msgspec.structs.replace(CAUSE, confidence="possible", hangs_on=("sm 12.1",), use={"--x": 1})
    with fails(Refused, "only possible", "sm 12.1"):
        choose_cause(told(guess))
    sure = msgspec.structs.replace(CAUSE, use={"--x": 1})
    assert choose_cause(told(sure, guess)) is sure
    with fails(Refused, "no setting of the service mends this", "do it"):
        choose_cause(told(CAUSE, sure))


HEAD = '[service.coder]\nmodel = "m"\ncontext = 4096\n'
OTHER = '\n[service.other]\nmodel = "o"\n'


@pytest.mark.parametrize(
    "tables",
    [
        'flags = { attention_backend = "flashinfer", x = 1 }  # why\nenvironment = { A = "1" }\n',
        '\n[service.coder.flags]\nattention_backend = "flashinfer"  # why\nx = 1\n[service.coder.environment]\nA = "1"\n',
    ],
    ids=["inline", "tables"],
)
def test_a_changed_wish_is_written_where_the_old_one_stands(tables: str) -> None:
    text = f"{HEAD}{tables}{OTHER}"
    new = changed(use={"--attention-backend": "triton", "--max-model-len": 2048, "$B": "2"}, drop=("--x", "$A"))
    written = write_wish(text, WISH, new, CAUSE)
    expected = tomllib.loads(text)
    expected["service"]["coder"] |= {"context": 2048, "flags": {"attention_backend": "triton"}, "environment": {"B": "2"}}
    assert tomllib.loads(written) == expected
    assert "# fix of r: " in written
    assert "# why" in written


def test_a_field_that_is_said_no_more_stays_as_a_comment() -> None:
    written = write_wish(HEAD, WISH, changed(drop=("--max-model-len",)), CAUSE)
    assert "# context = 4096\n" in written
    assert "context" not in tomllib.loads(written)["service"]["coder"]


def test_a_form_that_cannot_be_changed_safely_is_refused() -> None:
    text = HEAD + 'flags = { attention_backend = "flashinfer", x = 1, y = { z = 1 } }\n'
    with pytest.raises(Refused):
        write_wish(text, WISH, changed(use={"--new": 1}), CAUSE)
