"""The head's plan of one model over several boxes: asks each for what it has, compares, and divides the model."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from stoker.config import Paths
from stoker.door_tables import check_boxes
from stoker.errors import Refused, StokerError
from stoker.facts.machine.boxes import THIS
from stoker.flows.boxes.link_file import find_link, read_links
from stoker.flows.planning import bind, read_ground
from stoker.flows.ranks.calls import find_calls
from stoker.flows.ranks.part import facts_of
from stoker.flows.ranks.ray import check_ray
from stoker.plan.choose import with_id
from stoker.plan.spread.linking import Place
from stoker.plan.spread.report import check_spread, make_spread
from stoker.records import Plan, Wish
from stoker.records.boxes import Link
from stoker.records.rank_views import RankFacts
from stoker.records.ranks import Part, RankAsk
from stoker.records.spread import SpreadReport

# What all ranks have to have alike, and what a person calls it.
ALIKE = {"engine": "engine", "version": "version", "environment": "environment", "revision": "model",
         "executor": "executor"}  # fmt: skip


def plan_head(wish: Wish, paths: Paths, own_name: str) -> Plan:
    """Returns the plan of rank 0, with the other ranks as its parts; raises Refused where the boxes cannot serve it so."""
    check_boxes(wish, "the service")
    _check_may_lead(wish, own_name)
    names = wish.boxes[1:]
    with ThreadPoolExecutor(len(names)) as pool:
        asked = [pool.submit(_ask, paths, name, wish.name) for name in names]
        ground = read_ground(wish)
        check_ray(ground)
        facts = [facts_of(ground), *(one.result() for one in asked)]
    _check_alike(wish, facts)
    places = _places(paths, wish.boxes, facts)
    report = check_spread(make_spread(ground, wish.boxes, [one.machine for one in facts], places))
    return _bind_head(report)


def _check_may_lead(wish: Wish, own_name: str) -> None:
    head = wish.boxes[0]
    if head not in (THIS, own_name):
        raise Refused(
            f"{wish.name} begins on the box `{head}`, and this one is `{own_name}`",
            why="the first of `boxes` is the head, which answers and starts the others",
            next_step=f"`stoker up {wish.name} --on {head}`, or [boxes] name = \"{head}\" here if this is it",
        )  # fmt: skip


def _ask(paths: Paths, box: str, service: str) -> RankFacts:
    try:
        return find_calls(paths, box).check_rank(service)
    except StokerError as problem:
        raise Refused(
            f"the box `{box}` cannot take its part of {service}: {problem.what}", why=problem.why,
            next_step=problem.next_step, rule=problem.rule,
        ) from problem  # fmt: skip


def _check_alike(wish: Wish, facts: Sequence[RankFacts]) -> None:
    """Raises Refused where the boxes would start different engines or models: they would hang, or answer nonsense."""
    for field, said in ALIKE.items():
        found = [str(getattr(one, field) or "unknown") for one in facts]
        if len(set(found)) > 1:
            told = ", ".join(f"{box}: {value}" for box, value in zip(wish.boxes, found, strict=True))
            raise Refused(
                f"the boxes of {wish.name} have not the same {said} ({told})",
                why="ranks that differ wait for each other in vain, or answer nonsense",
                next_step="fetch the same on each box; `stoker boxes status` names them",
            )
    counts = {one.boxes for one in facts}
    if counts != {len(wish.boxes)}:
        raise Refused(
            f"the boxes do not agree over how many {wish.name} is spread: {', '.join(map(str, sorted(counts)))}",
            next_step=f"give [service.{wish.name}] the same `boxes` on each of them",
        )


def _places(paths: Paths, boxes: Sequence[str], facts: Sequence[RankFacts]) -> list[Place]:
    """Returns where each box is reached by the others: as the links reach them, and as this box goes out to the first."""
    links = [find_link(read_links(paths.links_file), name) for name in boxes[1:]]
    addresses = [_look_up(link) for link in links]
    addresses.insert(0, _own_address(addresses[0], links[0].port))
    return [_place(box, address, one) for box, address, one in zip(boxes, addresses, facts, strict=True)]


def _look_up(link: Link) -> str:
    try:
        return socket.gethostbyname(link.host)
    except OSError as problem:
        raise Refused(
            f"the box `{link.name}` is reached at {link.host}, which has no IPv4 address here",
            why=f"the ranks of a model meet over IPv4 ({problem.strerror or problem})",
            next_step=f"join it by one: `stoker boxes remove {link.name}`, then `stoker boxes add`",
        ) from problem


def _own_address(host: str, port: int) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:  # says nothing: the kernel only looks up the way
        one.connect((host, port))
        return str(one.getsockname()[0])


def _place(box: str, address: str, facts: RankFacts) -> Place:
    found = next((name for name, own in facts.places if own == address), None)
    if found is None:
        raise Refused(
            f"the box `{box}` is reached at {address}, which none of its interfaces has",
            why="the ranks of a model speak to each other directly, and no address in between can stand for one",
            next_step=f"join {box} by an address of its own: `stoker boxes remove {box}`, then `stoker boxes add`",
        )
    return Place(found, address)


def _bind_head(report: SpreadReport) -> Plan:
    chosen, head = report.chosen, report.ranks[0] if report.ranks else None
    if chosen is None or head is None or chosen.kind not in ("tensor", "pipeline"):
        raise Refused(
            f"{report.service} is a copy on each box, and each box starts its own",
            why=report.because, next_step=f"`stoker up {report.service} --on BOX` for each, without `boxes` in their tables",
        )  # fmt: skip
    parts = tuple(
        Part(box, RankAsk(report.service, rank, chosen.tensor, chosen.pipeline, report.link))
        for rank, box in enumerate(report.boxes[1:], 1)
    )
    return with_id(msgspec.structs.replace(bind(head.plan), plan_id="", parts=parts))
