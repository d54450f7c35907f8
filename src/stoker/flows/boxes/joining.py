"""Joins another box from this side: shows it the code, and gets a key for the link."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.boxes.codes import read_code
from stoker.flows.boxes.pinned_http import PinnedConnection, naming
from stoker.records.boxes import BOX_PORT, BoxWish, JoinAsked, JoinGiven, Link

JOIN_LIMIT_S = 10.0


def join_box(wish: BoxWish, own_name: str) -> Link:
    """Returns the link to a box that let this door in; raises Refused, WrongUse or StokerError."""
    if wish.name == own_name:
        raise WrongUse(f"`{wish.name}` is this box's own name", next_step="give the other one another name")
    host, port = read_address(wish.url)
    code = read_code(wish.code)
    address = f"{host}:{port}"
    connection = PinnedConnection(host, port, code.pin, JOIN_LIMIT_S)
    try:
        with naming("", address):
            body = msgspec.json.encode(JoinAsked(code.secret, own_name))
            connection.request("POST", "/join", body, {"content-type": "application/json"})
            pin = sha256(connection.shown).hexdigest()
            reply = connection.getresponse()
            raw = reply.read()
    finally:
        connection.close()
    if reply.status != 200:
        raise Refused(f"the box at {address} did not let this door in", why=_said(raw))
    try:
        given = msgspec.json.decode(raw, type=JoinGiven)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise StokerError(f"what the box at {address} answered cannot be read", why=str(problem)) from problem
    return Link(wish.name, host, port, pin, given.key, given.may_act)


def read_address(url: str) -> tuple[str, int]:
    """Returns host and port of a box's URL; raises WrongUse for anything but https."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != "https" or not host or parts.path not in ("", "/"):
        raise WrongUse(
            f"`{url}` is no box's address", why="links are TLS, to a box's [boxes] host and port",
            next_step=f"write https://HOST:{BOX_PORT}, as `stoker boxes code` prints it",
        )  # fmt: skip
    return host, port or BOX_PORT


def _said(raw: bytes) -> str:
    try:
        answer: dict[str, Any] = msgspec.json.decode(raw)
        return str(answer["error"]["message"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return raw[:300].decode(errors="replace")
