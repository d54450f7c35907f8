"""The plan of a program that is no engine of ours: a text-to-speech server, an image tool. Its owner says what it takes."""

from __future__ import annotations

import hashlib
import re

from stoker.config import SERVICE_UNIT
from stoker.errors import Refused
from stoker.plan.choose import with_id
from stoker.plan.gate import gate_of_command
from stoker.plan.wishes import DRAFTING, USER, check_wish
from stoker.records import GIB, Plan, Setting, Wish

COMMAND = "command"
FOR_ENGINES = (
    "model", "draft", "context", "parallel", "gpu_layers", "threads", "prompt_cache_mib", "server", "memory_share", "flags",
    "version", "image", "mounts", "batch_tokens", "graph_batch", *DRAFTING,
)  # fmt: skip
FOR_PROGRAMS = ("program", "environment", "mounts")


def plan_command(wish: Wish) -> Plan:
    """Returns the plan of a service with `engine = "command"`; raises Refused for what is missing or would be ignored."""
    check_wish(wish)
    _check_is_whole(wish)
    signs = {"health": wish.health, "ready_line": wish.ready_line}
    settings = [Setting(name, value, USER) for name, value in signs.items() if value]
    settings += [Setting(f"${name}", value, USER) for name, value in wish.environment.items()]
    return with_id(
        Plan(
            plan_id="", service=wish.name, model=wish.served_name or wish.name, model_path="",
            revision=hashlib.sha256("\0".join(wish.program or (wish.unit or "",)).encode()).hexdigest(),
            engine=COMMAND, server=None, unit=wish.unit,
            port=wish.port or 0, settings=tuple(settings), memory_need_bytes=int((wish.claim_gib or 0) * GIB),
            memory_because="declared", program=wish.program, answers=wish.served_name is not None, group=wish.group,
            gate=gate_of_command(wish), gate_because=USER if wish.gate else "",
        )
    )  # fmt: skip


def _check_is_whole(wish: Wish) -> None:
    table = f"[service.{wish.name}]"
    if wish.unit is not None:
        _check_unit(wish, table)
    elif not wish.program:
        raise Refused(
            f"{wish.name} has no command",
            next_step=f"set `program` in {table} to its words, or `unit` to the name of its systemd unit",
        )
    if wish.claim_gib is None:
        raise Refused(
            f"nobody knows how much memory {wish.name} takes",
            why="a program that is no engine has no model from which it could be counted, and nothing starts without room",
            next_step=f"set `claim_gib` in {table} to what it takes at its peak",
        )
    if not wish.health and not wish.ready_line:
        raise Refused(
            f"nothing tells when {wish.name} is up",
            next_step=f"set `health` in {table} to a path that answers 200, or `ready_line` to words of its log",
        )
    if wish.health and not wish.port and not any("{port}" in word for word in wish.program):
        raise Refused(
            f"nobody knows on which port {wish.name} answers",
            next_step=f"set `port` in {table}, or write {{port}} where its command takes one",
        )
    _check_pattern(wish.ready_line or "")
    unused = [name for name in FOR_ENGINES if getattr(wish, name)]
    if unused:
        raise Refused(
            f"`{unused[0]}` means nothing for a command", next_step=f"say it in `program` or `environment` of {table}"
        )


def _check_unit(wish: Wish, table: str) -> None:
    if SERVICE_UNIT.fullmatch(wish.unit or "") is None:
        raise Refused(f"`unit` is {wish.unit!r}", next_step='name a unit as systemd does, such as "voxtral.service"')
    unused = [name for name in FOR_PROGRAMS if getattr(wish, name)]
    if unused:
        raise Refused(
            f"`{unused[0]}` means nothing beside `unit`",
            why="what a unit runs, and in which environment, stands in the unit",
            next_step=f"say it in {wish.unit} (`systemctl edit {wish.unit}`), or leave `unit` out of {table}",
        )
    if wish.served_name and not wish.port:
        raise Refused(f"nobody knows on which port {wish.name} answers", next_step=f"set `port` in {table}")


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as problem:
        raise Refused(
            f"`ready_line` is {pattern!r}, which is no pattern",
            why=str(problem),
            next_step="write it as Python's regular expressions are: a backslash before ( [ . * + ? that are meant",
        ) from problem
