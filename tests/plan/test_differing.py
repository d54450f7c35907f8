"""Two plans side by side: what decides the launch is compared, in the other plan's order, and secrets stay secret."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.plan.differing import OTHER, put_beside
from stoker.records import GIB, Plan, Setting, SettingValue
from support import make_plan

PASSWORD = "correct horse"


def changed(here: Plan, there: Plan) -> dict[str, tuple[str | None, str | None]]:
    return {one.name: (one.here, one.there) for one in put_beside(here, there).changes}


def setting(name: str, value: SettingValue, because: str = "why") -> Setting:
    return Setting(name, value, because)


def test_the_same_plan_has_nothing_otherwise() -> None:
    plan = make_plan(setting("context", 4096), setting("$HF_TOKEN", PASSWORD))
    assert put_beside(plan, plan).changes == ()


def test_settings_that_came_went_and_changed_are_told_with_their_reason() -> None:
    here = make_plan(setting("context", 4096, "as it was trained"), setting("--old", True, "it was needed"))
    there = make_plan(setting("context", 8192, "you asked for it"), setting("--new", (1, 2), "a rule"), plan_id="other")
    beside = put_beside(here, there)
    assert beside.plan_id == "other"
    told = [(one.name, one.here, one.there, one.because) for one in beside.changes]
    assert told == [
        ("context", "4096", "8192", "you asked for it"),
        ("--new", None, "1 2", "a rule"),
        ("--old", "True", None, "it was needed"),
    ]


@pytest.mark.parametrize(
    ("what", "before", "after", "name", "shown"),
    [
        ("engine_version", None, "0.5.16", "version", (None, "0.5.16")),
        ("image", "a:1", None, "image", ("a:1", None)),
        ("port", 0, 8001, "port", ("0", "8001")),
        ("gate", (), ("answers", "tools"), "gate", (None, "answers tools")),
        ("mounts", (), (("/a", "/b"),), "mounts", (None, "/a:/b")),
        ("program", ("/opt/a",), ("/opt/b", "-m"), "program", ("/opt/a", "/opt/b -m")),
        ("memory_need_bytes", GIB, 2 * GIB, "memory", ("1.0 GiB", "2.0 GiB")),
        ("revision", "old", "new", "revision", ("old", "new")),
    ],
)
def test_whatever_else_decides_the_launch_is_told(
    what: str, before: Any, after: Any, name: str, shown: tuple[Any, Any]
) -> None:
    assert changed(make_plan(**{what: before}), make_plan(**{what: after})) == {name: shown}


def test_that_a_secret_changed_is_told_and_the_secret_is_not() -> None:
    here = make_plan(setting("--api-key", PASSWORD), setting("$HF_TOKEN", "a"), program=("/opt/a", "--token", PASSWORD))
    there = make_plan(setting("--api-key", "battery staple"), program=("/opt/a", "--token", "battery"))
    told = changed(here, there)
    assert told["--api-key"] == ("***", OTHER)
    assert told["$HF_TOKEN"] == ("***", None)
    assert told["program"] == ("/opt/a --token ***", OTHER)
    assert not [one for one in (PASSWORD, "battery") if one in str(told)]
