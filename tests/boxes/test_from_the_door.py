"""What a person or an agent at one box finds out of another: proofs, measurements, diagnoses, logs and states."""

from __future__ import annotations

from typing import Any

import pytest

from home import wait_for
from net_boxes import IN_NAMESPACES, Box, Trio
from stoker.errors import Refused
from stoker.mcp.desk import Desk
from stoker.mcp.tools.diagnosing import OfService, diagnose_service
from stoker.mcp.tools.knowing import OfMachine, machine_facts
from stoker.mcp.tools.looking import Logs, Status, service_logs, service_status

pytestmark = IN_NAMESPACES


def asked_of(door: Box, service: str) -> float:
    """Returns how many requests a door sent to a service, by its own metrics."""
    with door.client() as client:
        lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("stoker_gateway_requests_total{") and f'service="{service}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


def view(told: object) -> dict[str, Any]:
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_service_of_another_box_is_proved_through_this_door_and_the_finding_is_kept_here(trio: Trio, name: str) -> None:
    before = asked_of(trio.a, f"demo@{name}")
    found = trio.a.json("verify", "demo", "--on", name, "--probe", "answers")
    assert (found["box"], found["verdict"]) == (name, "pass")
    assert asked_of(trio.a, f"demo@{name}") > before
    kept = trio.a.json("verify", "--last", "demo", "--on", name)
    assert (kept["service"], kept["occasion"], kept["verification"]["box"]) == (f"demo@{name}", "verify", name)
    own = {"b": trio.b, "c": trio.c}[name].json("verify", "--last", "demo")
    assert (own["service"], own["occasion"]) == ("demo", "gate")


@pytest.mark.parametrize("name", ["b", "c"])
def test_a_measurement_names_the_box_and_says_only_what_the_link_lets_be_known(trio: Trio, name: str) -> None:
    other = "c" if name == "b" else "b"
    before = asked_of(trio.a, f"demo@{name}"), asked_of(trio.a, f"demo@{other}")
    words = ("--pp", "64", "--tg", "8", "--runs", "2")
    run = trio.a.json("bench", "demo", "--on", name, *words)
    subject = run["subject"]
    (service,) = trio.a.json("status", "--on", name)["services"]
    assert (subject["box"], subject["service"], subject["plan_id"]) == (name, "demo", service["plan_id"])
    assert (subject["engine"], subject.get("machine")) == ("llamacpp", None)
    assert bool(subject.get("flags")) == (name == "b")  # the link to c may not read plans
    assert asked_of(trio.a, f"demo@{name}") > before[0]
    assert asked_of(trio.a, f"demo@{other}") == before[1]
    assert f"box      {name}" in trio.a.run("bench", "show", str(run["id"])).stdout


def test_a_request_that_names_a_box_is_answered_by_no_other(trio: Trio) -> None:
    trio.net.cable(trio.b, "down")
    try:
        reply = trio.a.chat(headers={"x-stoker-box": "b"})
        assert reply.status_code in (502, 503), dict(reply.headers)
        assert reply.headers.get("x-stoker-box") != "c"
        wait_for("b to be away", lambda: trio.a.sees(trio.b.name, is_here=False), 5.0)
        assert trio.a.chat().headers["x-stoker-box"] == "c"
    finally:
        trio.net.cable(trio.b, "up")
    wait_for("it to be back", lambda: trio.a.serves(trio.b), 5.0)


def test_a_diagnosis_takes_a_link_that_may_act_and_states_and_figures_any_link(trio: Trio) -> None:
    told = trio.a.json("diagnose", "demo", "--on", "b")
    assert (told["source"], told["engine"], told["ready"]) == ("demo", "llamacpp", True)
    assert "may ask its models and look, and no more" in trio.a.run("diagnose", "demo", "--on", "c", code=3).stderr
    assert "--on takes a service's name" in trio.a.run("diagnose", "--on", "b", code=2).stderr
    assert trio.a.json("status", "--on", "b")["boxes"] is None  # with whom it is linked is nobody else's to know
    for name in ("b", "c"):
        (seen,) = trio.a.json("watch", "--on", name)["services"]
        assert (seen["name"], seen["state"]) == ("demo", "READY")


def test_an_agent_at_one_box_sees_of_another_what_the_link_allows(trio: Trio) -> None:
    desk = Desk(trio.a.paths, may_act=False)
    with trio.a.inside():
        here = view(service_status(desk, Status()))
        assert [(one["box"], one["is_here"]) for one in here["boxes"]] == [("b", True), ("c", True)]
        there = view(service_status(desk, Status(box="c")))
        assert [(one["name"], one["state"]) for one in there["services"]] == [("demo", "READY")]
        assert view(diagnose_service(desk, OfService("demo", box="b")))["engine"] == "llamacpp"
        assert view(service_logs(desk, Logs("demo", box="b")))["untrusted_lines"]
        assert view(machine_facts(desk, OfMachine(box="b")))["memory"].total_bytes > 0
        with pytest.raises(Refused, match="may ask its models and look"):
            diagnose_service(desk, OfService("demo", box="c"))
        with pytest.raises(Refused, match="may ask its models and look"):
            service_logs(desk, Logs("demo", box="c"))
        with pytest.raises(Refused, match="may ask its models and look"):
            machine_facts(desk, OfMachine(box="c"))
