"""What is written down, and what this machine is."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from stoker.mcp.brief import plain, untrusted
from stoker.mcp.desk import Desk
from stoker.mcp.tool import Arguments, OneBox, Tool
from stoker.records import Hit, Machine


class Search(Arguments, frozen=True):
    """What is looked for."""

    query: Annotated[str, msgspec.Meta(description="A few words: an error's text, a flag, a model.", max_length=1000)]
    most: Annotated[int, msgspec.Meta(description="How many hits at most.", ge=1, le=20)] = 6


class OfMachine(Arguments, frozen=True):
    """Which machine."""

    box: OneBox = None


def search_knowledge(desk: Desk, asked: Search) -> object:
    """Searches rules, pages and notes."""
    from stoker.flows.knowledge import search_knowledge as search

    found = search(desk.paths, asked.query, asked.most)
    return {
        "hits": [_hit(one) for one in found.hits], "left_off": found.left_off, "all_words": found.all_words,
        "not_searched": [plain(one) for one in found.unread[:5]],
    }  # fmt: skip


def _hit(hit: Hit) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": hit.kind, "source": hit.source, "line": hit.line}
    if hit.kind == "note":
        return told | {"untrusted_title": plain(hit.title), "snippet": untrusted(hit.snippet)}
    more = {"resource": f"stoker://rules/{hit.source}", "contradicts": hit.contradicts} if hit.kind == "rule" else {}
    return told | {"title": hit.title, "snippet": hit.snippet, "standing": hit.standing, **more}


def machine_facts(desk: Desk, asked: OfMachine) -> object:
    """Reads a machine."""
    if asked.box is not None:
        from stoker.flows.boxes.linked import find_linked

        return {"box": asked.box, **facts_view(find_linked(desk.paths, asked.box, act=True).machine())}
    from stoker.flows.facts import read_facts

    return facts_view(read_facts(desk.paths))


def facts_view(machine: Machine) -> dict[str, Any]:
    """Returns what decides how a model is served here."""
    details = machine.details
    return {
        "product": machine.product, "arch": machine.arch, "os": machine.os, "kernel": machine.kernel,
        "cpu_model": machine.cpu_model, "cpu_count": machine.cpu_count, "memory": machine.memory, "gpus": machine.gpus,
        "unified_memory": machine.unified_memory, "driver": machine.driver, "cuda": machine.cuda, "engines": machine.engines,
        "disk": machine.disk, "memory_holders": details.holders[:5] if details else (),
    }  # fmt: skip


TOOLS = (
    Tool(
        "search_knowledge", "Search what is known",
        "Searches the rules (what crashes, runs out of memory, is slow or misleads, with who measured it), Stoker's pages, "
        "and the user's own notes. Rules say how well they stand and who says otherwise; notes were checked by nobody.",
        Search, search_knowledge,
    ),
    Tool(
        "machine_facts", "What this machine is",
        "The machine as Stoker read it: GPUs, unified memory or not, memory free and in use, driver, engines, disk. "
        "What is absent is unknown, never zero.", OfMachine, machine_facts,
    ),
)  # fmt: skip
