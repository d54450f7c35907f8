"""Tells an API's answer from an error, and an error from all the other things that may stand at an address."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from stoker.probes.kit.findings import Declined, Trouble
from stoker.probes.kit.wire import UNTRUSTED, Reply

OK, FIRST_REDIRECT, FIRST_ERROR = 200, 300, 400
KEPT_CHARACTERS = 400
NOT_JSON = re.compile(rb":\s*(NaN|-?Infinity)\b")


def check_reply(reply: Reply) -> None:
    """Raises Trouble where no answer of an API came, Declined where it is an error."""
    if reply.problem:
        raise Trouble(reply.problem, _mend(reply))
    status = reply.status or 0
    if FIRST_REDIRECT <= status < FIRST_ERROR:
        to = reply.headers.get("location", "nowhere")
        raise Trouble(f"it redirects (HTTP {status}) to {to}", f"clients do not follow that with a key: name {to} itself")
    if is_page(reply):
        raise Trouble(
            f"it answered a web page (HTTP {status}), no JSON",
            "this is a web site's address, not an API's: is the path right?",
        )
    if status != OK:
        raise Declined(status, error_message(reply))


def _mend(reply: Reply) -> str:
    if UNTRUSTED in reply.problem:
        return "clients will refuse it too; to trust a certificate of your own: SSL_CERT_FILE=ca.pem stoker verify ..."
    return ""


def is_page(reply: Reply) -> bool:
    """Tells whether what came is meant for a browser."""
    return "html" in reply.headers.get("content-type", "") or reply.body[:200].lstrip()[:1] == b"<"


def error_message(reply: Reply) -> str:
    """Returns what an error says, in whichever of the usual places."""
    try:
        body = msgspec.json.decode(reply.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return reply.body[:KEPT_CHARACTERS].decode(errors="replace").strip() or "nothing"
    error = body.get("error") or body if isinstance(body, dict) else body
    said = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return (said if isinstance(said, str) else msgspec.json.encode(said or body).decode())[:KEPT_CHARACTERS]


def _not_a_number(body: bytes) -> str:
    """Python's servers write NaN where a kernel computed nonsense, and most clients cannot read that."""
    found = NOT_JSON.search(body)
    return f"it holds {found[1].decode()}, the sign of a computation that went wrong" if found else ""


def read_json(reply: Reply) -> dict[str, Any]:
    """Returns the object that came; raises Trouble or Declined where there is none."""
    check_reply(reply)
    try:
        body: dict[str, Any] = msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise Trouble(f"its answer is no JSON object: {_not_a_number(reply.body) or problem}") from problem
    if body.get("error"):
        raise Trouble(f"it answers HTTP 200 with an error: {error_message(reply)}", "clients take HTTP 200 for an answer")
    return body
