"""A box's part of a model that it shares with others: what it has for it, and the plan of its rank.

What is started is what this box's own stoker.toml says of the service; the head adds its rank, the sizes, and where the
ranks find each other. So whoever has a link can start nothing else.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import psutil

from stoker.config import Config, read_config
from stoker.errors import Refused
from stoker.flows.planning import bind, read_ground
from stoker.flows.ranks.ray import check_ray
from stoker.plan.ground import Ground
from stoker.plan.speed.ways import Way
from stoker.plan.spread.ranks import check_can_spread, plan_rank
from stoker.plan.spread.report import check_findings
from stoker.records import Plan, Wish
from stoker.records.rank_views import RankFacts
from stoker.records.ranks import RankAsk, Seat


def read_facts(service: str, config_file: Path) -> RankFacts:
    """Returns what this box has for its part of a service; raises Refused where its stoker.toml has no such part."""
    wish = _find(service, read_config(config_file))
    ground = read_ground(wish)
    check_can_spread(ground)
    check_ray(ground)
    return facts_of(ground)


def facts_of(ground: Ground) -> RankFacts:
    """Returns what a box has for its part, by what its plan stands on."""
    return RankFacts(
        ground.machine, len(ground.wish.boxes), ground.engine, ground.version, _environment(ground), ground.model.digest,
        tuple(_places()), ground.wish.executor,
    )  # fmt: skip


def _environment(ground: Ground) -> str:
    found = ground.environment
    if found is None:
        return ""
    if found.digest is not None:
        return found.digest
    said = {"python": found.python, "torch": found.torch, "CUDA": found.cuda}
    said |= {"ray": found.ray} if ground.wish.executor == "ray" else {}
    return ", ".join(f"{name} {version}" for name, version in said.items() if version)


def _places() -> list[tuple[str, str]]:
    return [
        (name, one.address)
        for name, found in sorted(psutil.net_if_addrs().items())
        for one in found
        if one.family is socket.AF_INET
    ]


def plan_part(ask: RankAsk, head: str, launch: str, config_file: Path) -> Plan:
    """Returns the plan of this box's rank; raises Refused where its table has no such part, or a rule forbids it."""
    wish = _find(ask.service, read_config(config_file))
    if len(wish.boxes) != ask.size or len(ask.link.ranks) != ask.size:
        raise Refused(
            f"{ask.service} is over {len(wish.boxes)} boxes here, and over {ask.size} for its head",
            why="each box starts what its own stoker.toml says", next_step="give the service the same `boxes` on each box",
        )  # fmt: skip
    _check_places(ask, head, wish)
    ground = read_ground(wish)
    check_can_spread(ground)
    check_ray(ground)
    way = Way(tensor=ask.tensor, pipeline=ask.pipeline)
    planned, findings = plan_rank(ground, wish.boxes[ask.rank], way, ask.link, ask.rank)
    check_findings(findings)
    plan = bind(planned.plan)
    # Its words may say a port; a worker has no use for one, and two boxes may be one machine.
    seat = Seat(ask.rank, ask.size, head, launch, has_rdma=ask.link.kind == "rdma")
    return msgspec.structs.replace(plan, answers=False, gate=(), gate_because="", port=0, seat=seat)


def _check_places(ask: RankAsk, head: str, wish: Wish) -> None:
    """Raises Refused where another box than this table's first asks, or for a rank at an address that this box has not."""
    if wish.boxes[0] not in (head, "this"):
        raise Refused(
            f"the box `{head}` is not the head of {wish.name}, `{wish.boxes[0]}` is",
            why="a box takes part where its own stoker.toml says so", next_step=f"start {wish.name} on `{wish.boxes[0]}`",
        )  # fmt: skip
    there = ask.link.ranks[0].address
    if wish.head_address not in (None, there):
        raise Refused(
            f"the head of {wish.name} is at {wish.head_address} by this box's table, and says that it is at {there}",
            why="whoever is the head is joined at its own word unless `head_address` says where it is",
            next_step=f"change `head_address` of [service.{wish.name}] if the head has moved; else ask who that is",
        )  # fmt: skip
    own = ask.link.ranks[ask.rank].address
    if own is not None and own not in {address for _, address in _places()}:
        raise Refused(
            f"this box has no address {own}", why=f"rank {ask.rank} of {wish.name} would meet the others there",
            next_step="give the service the same `boxes`, in the same order, on each box",
        )  # fmt: skip


def _find(service: str, config: Config) -> Wish:
    wish = config.services.get(service)
    if wish is None or not wish.boxes:
        raise Refused(
            f"no stoker.toml on this box has a service `{service}` with `boxes`" if wish is None
            else f"the service `{service}` names no `boxes` on this box",
            why="a box starts its part of a model by its own table, never by what another box tells it",
            next_step=f"give [service.{service}] the same `boxes` on each box, with the model's own path there",
        )  # fmt: skip
    return wish
