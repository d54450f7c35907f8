"""The shape of our own errors on each protocol's paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.gateway.anthropic import anthropic_error, is_anthropic
from stoker.gateway.keyring import Denial
from stoker.gateway.refusals import error_event


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens", "/service/a/v1/messages"])
def test_anthropics_paths(path: str) -> None:
    assert is_anthropic(path)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages/batches", "/", ""])
def test_other_paths(path: str) -> None:
    assert not is_anthropic(path)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"), (401, "authentication_error"), (403, "permission_error"), (404, "not_found_error"),
        (405, "invalid_request_error"), (413, "request_too_large"), (429, "rate_limit_error"), (500, "api_error"),
        (502, "api_error"), (503, "overloaded_error"), (504, "timeout_error"),
    ],
)  # fmt: skip
def test_each_status_has_anthropics_own_type(status: int, kind: str) -> None:
    error = json.loads(anthropic_error(status, "what happened", "a_code"))
    assert error == {"type": "error", "error": {"type": kind, "message": "what happened", "code": "a_code", "src": "stoker"}}


def read_event(path: str) -> tuple[str | None, Any]:
    """Returns the name and the data of the event that ends a broken stream on a path."""
    before, event, after = error_event(path, Denial(502, "engine_died", "it broke", "engine_error")).split(b"\n\n")
    assert before == after == b""
    fields = dict(line.split(": ", 1) for line in event.decode().split("\n"))
    return fields.get("event"), json.loads(fields["data"])


def test_a_broken_chat_ends_with_openais_error() -> None:
    name, data = read_event("/v1/chat/completions")
    assert (name, data["error"]["message"]) == (None, "it broke")


def test_a_broken_message_ends_with_anthropics_error() -> None:
    name, data = read_event("/v1/messages")
    assert (name, data["type"], data["error"]["type"]) == ("error", "error", "api_error")


def test_a_broken_response_ends_with_an_error_of_its_own_protocol() -> None:
    name, data = read_event("/v1/responses")
    assert (name, data["type"], data["message"], data["error"]["message"]) == ("error", "error", "it broke", "it broke")
