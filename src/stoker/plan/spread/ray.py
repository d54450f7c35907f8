"""What each box has to run where Ray starts the engine's processes: its head on the first, which the others join. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from stoker.plan.ground import Ground
from stoker.plan.spread.telling import RAY_PORT, ray_address
from stoker.records import GIB
from stoker.records.ranks import Link, Ray
from stoker.rules.match import preferred

STORE = "ray_store_gib"  # a rule's word for what Ray's store of objects may take; Ray itself would take 30 % of the memory


def ray_of(ground: Ground, link: Link, rank: int) -> Ray:
    """Returns a box's part of the cluster: processes that stay in front, so that their end is seen and brought about."""
    address, own = ray_address(link.ranks[0]), link.ranks[rank].address
    role = ("--address", address) if rank else ("--head", "--port", str(RAY_PORT), "--include-dashboard=false")
    here = ("--node-ip-address", own) if own else ()
    # One GPU a box. Ray starts a worker for each processor it counts, and vLLM's ask for none.
    sizes = ("--num-gpus", "1", "--num-cpus", "1", *_store(ground))
    return Ray((program_of(ground.wish.program), "start", *role, *here, *sizes, "--block"), address)


def _store(ground: Ground) -> tuple[str, ...]:
    found = preferred(ground.rules, ground.facts()).get(STORE)
    return ("--object-store-memory", str(int(float(found[0]) * GIB))) if found else ()


def program_of(engine: tuple[str, ...]) -> str:
    """Returns Ray's program, that of the engine's environment: it starts the engine's workers by its own Python."""
    folder = str(PurePosixPath(engine[0]).parent) if engine else "."
    return f"{folder}/ray" if folder != "." else "ray"
