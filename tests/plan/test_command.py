"""The plan of a program that is no engine: what its owner has to say, and what would be ignored."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.cli.plan_text import plan_text
from stoker.errors import Refused
from stoker.flows.rendering import render_launch_text
from stoker.launch.command import render_engine
from stoker.launch.from_plan import unit_of
from stoker.launch.unit import render_unit
from stoker.plan.command import plan_command
from stoker.plan.report import report_without_secrets
from stoker.records import GIB, Report, Wish
from support import fails

WHOLE: dict[str, Any] = {
    "name": "voice", "engine": "command", "program": ("/opt/tts/serve", "--port", "{port}"), "claim_gib": 24.5,
    "health": "/up",
}  # fmt: skip


def make_command(**changes: Any) -> Wish:
    """Returns the wish for a text-to-speech server."""
    return Wish(**{**WHOLE, **changes})


def test_a_command_is_planned_with_the_claim_and_the_words_that_its_owner_gave() -> None:
    plan = plan_command(make_command(environment={"VOICE": "ada"}))
    assert (plan.memory_need_bytes, plan.memory_because) == (int(24.5 * GIB), "declared")
    spec = render_engine(plan, 9123)
    assert spec.argv == ("/opt/tts/serve", "--port", "9123")
    assert (spec.environment, spec.health_path, spec.ready_line) == ((("VOICE", "ada"),), "/up", None)
    assert not plan.answers


def test_other_words_another_claim_or_another_sign_make_another_plan() -> None:
    first = plan_command(make_command()).plan_id
    others = ({"program": ("/opt/tts/serve2", "{port}")}, {"claim_gib": 25}, {"health": "/"}, {"environment": {"A": "b"}})
    ids = {plan_command(make_command(**changes)).plan_id for changes in others}
    assert len(ids | {first}) == 5


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"program": ()}, ("voice has no command", "set `program` in [service.voice]")),
        ({"claim_gib": None}, ("how much memory voice takes", "set `claim_gib`")),
        ({"claim_gib": 0.0}, ("`claim_gib` is 0",)),
        ({"health": None}, ("nothing tells when voice is up", "`ready_line`")),
        ({"program": ("serve",)}, ("on which port voice answers", "write {port}")),
        ({"health": None, "ready_line": "up ("}, ("which is no pattern", "regular expressions")),
        ({"model": "/m.gguf"}, ("`model` means nothing for a command",)),
        ({"image": "tts:1"}, ("`image` means nothing for a command",)),
        ({"mounts": ("/a:/b",)}, ("`mounts` means nothing for a command",)),
        ({"flags": {"a": 1}}, ("`flags` means nothing for a command", "`program` or `environment`")),
    ],
)
def test_what_is_missing_or_would_be_ignored_is_refused(changes: dict[str, Any], parts: tuple[str, ...]) -> None:
    with fails(Refused, *parts):
        plan_command(make_command(**changes))


def test_a_plan_shows_the_claim_and_the_words_without_secrets() -> None:
    wish = make_command(program=("serve", "{port}", "--api-key", "abc123", "TOKEN=xyz"))
    report = Report(plan_command(wish), None, "you asked for it")
    text = plan_text(report, "this", explain=True, alternatives=False)
    assert "memory  24.5 GiB, declared (claim_gib)" in text
    assert "serve '{port}' --api-key '***' 'TOKEN=***'" in text
    assert "health /up" in text
    shown = report_without_secrets(report).plan.program
    assert shown == ("serve", "{port}", "--api-key", "***", "TOKEN=***")


def test_a_command_is_rendered_as_words_and_as_a_unit() -> None:
    plan = plan_command(make_command(environment={"VOICE": "ada"}))
    words = render_launch_text(Report(plan, None), "argv")
    assert words.replace(" \\\n", " ").split() == ["env", "VOICE=ada", "/opt/tts/serve", "--port", "30000"]
    unit = render_unit(unit_of(plan, 9123, "ada"))
    assert "ExecStart=/opt/tts/serve --port 9123" in unit.replace(" \\\n   ", "")
    assert "Condition" not in unit
    assert "Environment=VOICE=ada" in unit.replace('"', "")


@pytest.mark.parametrize("form", ["docker", "podman", "compose", "quadlet", "dockerfile"])
def test_a_command_as_a_container_is_refused_with_what_can_be_printed(form: str) -> None:
    with fails(Refused, "no image is known that holds it", "`--render unit` or `--render argv`"):
        render_launch_text(Report(plan_command(make_command()), None), form)
