"""The gateway's errors as Anthropic's clients read them, on the paths where an engine speaks Anthropic's protocol."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

PATHS = ("/v1/messages", "/v1/messages/count_tokens")
CLIENTS_FAULT, SERVERS_FAULT = "invalid_request_error", "api_error"
# What Anthropic's API answers with each status; a client chooses its exception by the status, and shows the type.
KINDS: Mapping[int, str] = {
    400: CLIENTS_FAULT,
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def is_anthropic(path: str) -> bool:
    """Tells whether a path is one of Anthropic's, at the root or under a service's own path."""
    return path.endswith(PATHS)


def anthropic_error(status: int, message: str, code: str) -> bytes:
    """Returns the JSON body of an error; `code` and `src` are Stoker's own."""
    kind = KINDS.get(status, SERVERS_FAULT if status >= 500 else CLIENTS_FAULT)
    fields = {"type": kind, "message": message, "code": code, "src": "stoker"}
    return msgspec.json.encode({"type": "error", "error": fields})


def anthropic_event(status: int, message: str, code: str) -> bytes:
    """Returns the event that ends a stream which broke."""
    return b"event: error\ndata: " + anthropic_error(status, message, code) + b"\n\n"
