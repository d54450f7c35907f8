"""What every engine file has to keep to, whichever it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from stoker.engines import find, names
from stoker.errors import WrongUse
from stoker.plan.choose import choose_plan
from stoker.records import StageName
from support import fails, make_model, make_wish

LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))
PORT = 43210

every_engine = pytest.mark.parametrize("name", names())


@every_engine
def test_an_engine_knows_its_own_name(name: str) -> None:
    assert find(name).name == name


@every_engine
def test_a_launch_is_words_that_name_the_model_the_port_and_loopback(name: str) -> None:
    plan = choose_plan(make_wish(engine=name, served_name="org/small model"), make_model(path="/models/with space.gguf"))
    spec = find(name).render(plan, PORT)
    assert all(isinstance(word, str) and word for word in spec.argv)
    assert "\0" not in "".join(spec.argv)
    assert {"/models/with space.gguf", "org/small model", "127.0.0.1", str(PORT)} <= set(spec.argv)
    assert spec.health_path.startswith("/")


@every_engine
def test_the_same_plan_gives_the_same_launch(name: str) -> None:
    plan = choose_plan(make_wish(engine=name), make_model())
    again = msgspec.json.decode(msgspec.json.encode(plan), type=type(plan))
    assert find(name).render(plan, PORT) == find(name).render(again, PORT)


@every_engine
def test_no_key_stands_in_the_words(name: str) -> None:
    spec = find(name).render(choose_plan(make_wish(engine=name), make_model()), PORT)
    assert not any("key" in word.lower() for word in spec.argv)
    assert spec.key_variable is None or spec.key_variable not in dict(spec.environment)


@every_engine
def test_a_version_that_is_not_there_is_unknown(name: str) -> None:
    engine = find(name)
    assert engine.parse_version("") is None
    assert engine.parse_version("Segmentation fault") is None


@every_engine
def test_metric_names_are_ours_to_theirs(name: str) -> None:
    metrics = find(name).metrics
    assert len(set(metrics.values())) == len(metrics)
    assert all(ours.isidentifier() for ours in metrics)


STAMP_GROUPS = {"year", "month", "day", "hour", "minute", "second", "milli", "micro"}
SIGN_GROUPS = {"took", "read", "hours", "minutes", "seconds", "gib", "mib"}


@every_engine
def test_the_signs_of_a_start_are_patterns_that_say_something(name: str) -> None:
    form = find(name).log_form
    assert form.tick_s > 0
    assert set(re.compile(form.stamp).groupindex) <= STAMP_GROUPS
    assert {"minute", "second"} <= set(re.compile(form.stamp).groupindex)
    for pattern in (form.stamp, form.speaker, form.starts, form.ready, *(sign.pattern for sign in form.signs)):
        assert not re.search(pattern, ""), f"{pattern!r} is found in every line"
    for sign in form.signs:
        groups = set(re.compile(sign.pattern).groupindex)
        assert groups <= SIGN_GROUPS
        assert groups & {"gib", "mib"} or sign.mark != "amount", "an amount without a unit"
        assert sign.stage in get_args(StageName)


@every_engine
def test_a_stage_that_begins_can_end(name: str) -> None:
    signs = find(name).log_form.signs
    assert {sign.stage for sign in signs if sign.mark == "begin"} <= {sign.stage for sign in signs if sign.mark == "end"}
    assert {"import", "weights", "warm-up"} <= {sign.stage for sign in signs}


STARTS = [log for log in LOGS if ("h200" in log.name or "cpu" in log.name) and "killed" not in log.name]


@pytest.mark.parametrize("log", STARTS, ids=lambda log: log.stem)
@every_engine
def test_an_engine_knows_the_start_in_its_own_logs_and_in_no_other(name: str, log: Path) -> None:
    form, lines = find(name).log_form, log.read_text().split("\n")
    own = log.name.startswith(name)
    assert any(re.search(form.starts, line) for line in lines) == own
    assert not own or any(re.search(form.stamp, line) for line in lines)


def test_there_are_logs_of_other_engines_to_be_wrong_about() -> None:
    assert len(LOGS) > 5


@pytest.mark.parametrize("name", ["nothing", "", "../llamacpp", "os", "__init__"])
def test_an_engine_that_does_not_exist_is_refused_with_those_that_do(name: str) -> None:
    with fails(WrongUse, f"no engine called `{name}`", "choose one of:", "llamacpp"):
        find(name)
