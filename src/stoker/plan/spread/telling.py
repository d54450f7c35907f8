"""What each rank is told beside the plan of one box: sizes and places as flags, addresses and devices as variables. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stoker.engines import UNKNOWN_HEAD, find
from stoker.errors import Refused
from stoker.plan.ground import Ground
from stoker.plan.situation import Facts
from stoker.plan.speed.ways import Way
from stoker.records import Rule, Setting
from stoker.records.ranks import Executor, Link, RankLink
from stoker.rules.match import preferred

PREFIX = "rank$"  # how a rule says what each rank is to be told: `rank$NAME = "{address}"`
BLANK = re.compile(r"\{(\w+)\}")
RENDEZVOUS_PORT, RAY_PORT = 29501, 6379


def rank_settings(ground: Ground, way: Way, link: Link, rank: int, executor: Executor) -> tuple[Setting, ...]:
    """Returns the settings of one rank; raises Refused where the engine knows no machines beside its own."""
    head = link.ranks[0]
    words = find(ground.engine).spread(way.tensor, way.pipeline, rank, head.address, RENDEZVOUS_PORT, executor)
    if not words:
        raise Refused(
            f"{ground.engine} serves no model over several boxes here",
            why="SGLang and vLLM do; llama.cpp's way (RPC) is experimental, and no plan is made for it",
            next_step="leave `boxes` out, or set `engine` to sglang or vllm",
        )
    flags = [Setting(name, value, _because(name, way, rank)) for name, value in words.items()]
    ray = ray_address(head) if executor == "ray" and rank == 0 else None
    return (*flags, *variables(ground.rules, ground.facts(), link.ranks[rank], ray))


def ray_address(head: RankLink) -> str:
    """Returns where Ray's head is reached, with `HEAD` for an address that nobody knows."""
    return f"{head.address or UNKNOWN_HEAD}:{RAY_PORT}"


def variables(rules: Iterable[Rule], facts: Facts, place: RankLink, ray: str | None = None) -> tuple[Setting, ...]:
    """Returns the variables that rules want for a rank, filled from its link; one whose blank nobody knows is left out."""
    known = {"address": place.address, "interface": place.interface, "devices": ",".join(place.devices) or None, "ray": ray}
    found = []
    for name, (value, rule) in preferred(rules, facts).items():
        blanks = BLANK.findall(str(value))
        if name.startswith(PREFIX) and all(known.get(blank) for blank in blanks):
            said = BLANK.sub(lambda hit: str(known[hit[1]]), str(value))
            found.append(Setting(f"${name.removeprefix(PREFIX)}", said, rule.title, rule.id))
    return tuple(found)


def _because(name: str, way: Way, rank: int) -> str:
    if "tensor" in name or name.endswith("tp-size"):
        return f"{way.tensor} boxes share each layer" if way.tensor > 1 else "no layer is shared"
    if "pipeline" in name or name.endswith("pp-size"):
        return f"{way.pipeline} parts of the layers, one after another" if way.pipeline > 1 else "every box has all layers"
    if "rank" in name:
        return "the head" if rank == 0 else "a worker's place"
    if name == "--headless":
        return "a worker: the head answers"
    if "executor" in name:
        return "what starts the engine's processes on the boxes"
    return "where the ranks find each other" if "addr" in name or "port" in name else "as many boxes as the service names"
