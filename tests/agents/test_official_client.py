"""The protocol's own client, in both eras of the protocol, finds what it needs and is answered."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client

from agent import HANDSHAKE, MODERN, ask_as_agent, ask_tool, ask_wrongly
from home import Home

LOOKING = {
    "bench_compare", "diagnose_log", "diagnose_service", "diagnose_sglang", "diagnose_vllm", "explain_setting",
    "lint_command", "machine_facts", "plan_service", "search_knowledge", "service_logs", "service_status", "verify_service",
}  # fmt: skip
ACTING = {"start_service", "stop_service", "switch_service", "apply_fix", "confirm_action"}

WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("service_logs", {"lines": "many"}, "Expected `int`, got `str` - at `$.lines`"),
    ("service_logs", {"lines": 0}, "Expected `int` >= 1"),
    ("service_logs", {"line": 5}, "unknown field `line`"),
    ("plan_service", {"on": "moon"}, "Invalid enum value 'moon' - at `$.on`"),
    ("search_knowledge", {}, "missing required field `query`"),
    ("search_knowledge", {"query": "..."}, "there is no word to search for"),
    ("diagnose_log", {"file": "/x", "text": "y"}, "name a file or give a text"),
    ("diagnose_log", {"file": "/" + "why " * 65}, "no file with a whole path"),
    ("diagnose_log", {"file": "-"}, "is no file with a whole path"),
    ("diagnose_log", {"file": "/dev/stdin"}, "is no file with a whole path"),
    ("diagnose_service", {"service": "nobody"}, "there are no logs yet"),
    ("diagnose_sglang", {"text": "INFO 11-20 vLLM API server version 0.26.0"}, "this is a log of vllm, not of sglang"),
    ("lint_command", {"command": "vllm serve 'x"}, "cannot be split into words"),
    ("lint_command", {"command": "ls -l"}, "starts no engine that is known"),
    ("explain_setting", {"engine": "vllm", "setting": "--x", "version": "0.0.1.x"}, "choose one of"),
    ("bench_compare", {"a": "7"}, "there is no benchmark run 7"),
    ("verify_service", {}, "the daemon is not running"),
    ("service_status", {"service": "nobody"}, "there is no service called `nobody`"),
)


async def list_everything(client: Client) -> dict[str, Any]:
    """Asks for all lists."""
    return {
        "version": client.protocol_version,
        "instructions": client.instructions,
        "tools": (await client.list_tools()).tools,
        "resources": (await client.list_resources()).resources,
        "templates": (await client.list_resource_templates()).resource_templates,
        "prompts": (await client.list_prompts()).prompts,
    }


@pytest.mark.parametrize(("mode", "version"), [(HANDSHAKE, "2025-11-25"), (MODERN, "2026-07-28")])
def test_everything_is_listed_in_both_eras(home: Home, mode: str, version: str) -> None:
    found = ask_as_agent(home, list_everything, mode=mode)
    assert found["version"] == version
    assert "never instructions" in found["instructions"]
    assert {tool.name for tool in found["tools"]} == LOOKING
    assert [str(one.uri) for one in found["resources"]] == ["stoker://rules"]
    assert {one.uri_template for one in found["templates"]} >= {"stoker://rules/{name}", "stoker://plans/{name}"}
    assert {one.name for one in found["prompts"]} == {"server-wont-start", "it-got-slow"}


def test_acting_tools_are_there_only_where_that_was_allowed_and_say_what_they_are(home: Home) -> None:
    tools = ask_as_agent(home, list_everything, "--allow-actions")["tools"]
    assert {tool.name for tool in tools} == LOOKING | ACTING
    assert {tool.name for tool in tools if tool.annotations.destructive_hint} == ACTING
    assert {tool.name for tool in tools if tool.annotations.read_only_hint} == LOOKING


def test_the_command_line_shows_the_same_tools(home: Home) -> None:
    assert {tool["name"] for tool in home.json("mcp")} == LOOKING
    assert {tool["name"] for tool in home.json("mcp", "--allow-actions")} == LOOKING | ACTING


def test_every_schema_is_strict_and_in_one_piece(home: Home) -> None:
    for tool in ask_as_agent(home, list_everything, "--allow-actions")["tools"]:
        schema = tool.input_schema
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False, tool.name
        assert "$ref" not in str(schema), tool.name


def test_all_descriptions_together_fit_into_a_small_models_context(home: Home) -> None:
    tools = ask_as_agent(home, list_everything, "--allow-actions")["tools"]
    letters = sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)
    assert letters < 14_100  # about 3,500 tokens


def test_wrong_arguments_are_told_so_that_the_model_can_mend_them(home: Home) -> None:
    async def story(client: Client) -> list[tuple[str, str]]:
        return [(says, await ask_wrongly(client, name, **arguments)) for name, arguments, says in WRONG]

    said = ask_as_agent(home, story)
    assert [(says, told) for says, told in said if says not in told] == []


def test_a_rule_can_be_read_and_a_question_has_a_way_to_its_answer(home: Home) -> None:
    async def story(client: Client) -> tuple[str, str]:
        read = await client.read_resource("stoker://rules/sglang-attn-triton-required")
        got = await client.get_prompt("server-wont-start", {"service": "coder"})
        block = got.messages[0].content
        return getattr(read.contents[0], "text", ""), getattr(block, "text", "")

    rule, prompt = ask_as_agent(home, story)
    assert '"evidence"' in rule
    assert "(coder)" in prompt
    assert prompt.index("diagnose_service") < prompt.index("explain_setting")


def test_a_broken_configuration_is_told_and_breaks_nothing_else(home: Home) -> None:
    home.paths.config.write_text("[servce.x]\n")

    async def story(client: Client) -> tuple[str, Any]:
        return await ask_wrongly(client, "plan_service"), await ask_tool(client, "machine_facts")

    refused, facts = ask_as_agent(home, story)
    assert "unknown key `servce`" in refused
    assert facts["memory"]["total_bytes"] > 0
    home.configure()
