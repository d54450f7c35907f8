"""A service that is a unit of systemd's: what its table has to say, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.errors import Refused
from stoker.launch.names import check_own_unit
from stoker.launch.sudoers import render_sudoers
from stoker.plan.command import plan_command
from stoker.records import Wish
from support import fails

WHOLE: dict[str, Any] = {
    "name": "voxtral", "engine": "command", "unit": "voxtral.service", "port": 9000, "claim_gib": 8.0, "health": "/health",
}  # fmt: skip


def test_a_unit_makes_a_plan_without_words() -> None:
    plan = plan_command(Wish(**WHOLE))
    assert (plan.unit, plan.program, plan.answers) == ("voxtral.service", (), False)
    assert plan_command(Wish(**{**WHOLE, "unit": "other.service"})).plan_id != plan.plan_id
    assert plan_command(Wish(**{**WHOLE, "unit": "vllm@1.service"})).unit == "vllm@1.service"


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"program": ("/bin/x",)}, ["`program` means nothing beside `unit`", "systemctl edit voxtral.service"]),
        ({"environment": {"A": "b"}}, ["`environment` means nothing beside `unit`"]),
        ({"health": None}, ["nothing tells when voxtral is up"]),
        ({"port": None}, ["on which port voxtral answers"]),
        ({"port": None, "health": None, "ready_line": "up", "served_name": "x"}, ["on which port voxtral answers"]),
        ({"claim_gib": None}, ["how much memory voxtral takes"]),
        ({"unit": None}, ["voxtral has no command", "or `unit`"]),
        *(
            ({"unit": name}, ["`unit` is"])
            for name in ("", "voxtral", "a b.service", "../x.service", "x.timer", "-x.service", "*.service")
        ),
    ],
)
def test_what_is_missing_or_would_be_ignored_is_refused(changes: dict[str, Any], parts: list[str]) -> None:
    with fails(Refused, *parts):
        plan_command(Wish(**{**WHOLE, **changes}))


def test_sudo_may_start_and_stop_the_unit_and_nothing_more() -> None:
    lines = render_sudoers("alice", ("voxtral",), units=("voxtral.service",)).splitlines()
    assert [line.split(" NOPASSWD: ")[1] for line in lines if "voxtral.service" in line and "stoker-" not in line] == [
        "/usr/bin/systemctl start voxtral.service",
        "/usr/bin/systemctl stop voxtral.service",
    ]


@pytest.mark.parametrize(
    "name", ["stoker.service", "stoker-demo.service", "*.service", "a b.service", "x.service\nALL", "x,y.service"]
)
def test_a_unit_that_could_mean_more_is_never_written_into_sudoers(name: str) -> None:
    with fails(Refused, "cannot be a service's unit"):
        check_own_unit(name)
    with fails(Refused, "cannot be a service's unit"):
        render_sudoers("alice", ("demo",), units=(name,))
