"""Each box's own plan: the plan of one box for its part of the model, told its place among the others. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.engines.vllm import MODULE
from stoker.errors import Refused
from stoker.plan.choose import with_id
from stoker.plan.ground import Ground
from stoker.plan.report import make_report
from stoker.plan.speed.ways import Way
from stoker.plan.spread.ray import ray_of
from stoker.plan.spread.sizes import share_of
from stoker.plan.spread.telling import rank_settings
from stoker.records import Finding
from stoker.records.ranks import Link
from stoker.records.spread import RankPlan

PLACES = ("--nnodes", "--node-rank", "--master-addr", "--master-port", "--dist-init-addr", "--headless",
          "--tensor-parallel-size", "--pipeline-parallel-size", "--distributed-executor-backend")  # fmt: skip
ALSO = {"--tp": "--tensor-parallel-size", "--tp-size": "--tensor-parallel-size", "-tp": "--tensor-parallel-size",
        "--pp": "--pipeline-parallel-size", "--pp-size": "--pipeline-parallel-size"}  # fmt: skip


def check_can_spread(ground: Ground) -> None:
    """Raises Refused where the engine, its version or the wish leaves no way to serve one model over several boxes."""
    wish = ground.wish
    said = next((name for name in wish.flags if _flag(name) in PLACES), None)
    if said is not None:
        raise Refused(
            f"`flags` sets {said}, and `boxes` names the machines",
            why="the plan decides sizes and ranks by the boxes that a service names",
            next_step="leave the flag out, or `boxes`",
        )
    if any(MODULE in word for word in wish.program):
        raise Refused(
            f"`program` is vLLM's module {MODULE}, which does not know --headless",
            why="a worker has to be started as `vllm serve`: the module would open a door of its own",
            next_step="set `program` to the command, such as ['/opt/venv/bin/vllm', 'serve']",
        )
    if wish.executor == "ray" and ground.engine != "vllm":
        raise Refused(f"`executor` is ray, which {ground.engine} has not", next_step="leave `executor` out, or use vllm")
    if wish.executor == "mp" and ground.engine != "llamacpp" and not ground.knows("--nnodes"):
        raise Refused(
            f"{ground.engine} {ground.version} has no --nnodes",
            why="without it this version starts over several machines through Ray alone",
            next_step='choose a newer version, or set executor = "ray"',
        )


def _flag(name: str) -> str:
    flag = "--" + name.strip().lstrip("-").replace("_", "-")
    return ALSO.get(flag, flag)


def plan_ranks(
    grounds: Sequence[Ground], names: Sequence[str], way: Way, link: Link
) -> tuple[tuple[RankPlan, ...], tuple[Finding, ...]]:
    """Returns the plan of each box, and what the rules find in them."""
    found: list[Finding] = []
    ranks = []
    for rank, (ground, name) in enumerate(zip(grounds, names, strict=True)):
        planned, findings = plan_rank(ground, name, way, link, rank)
        found += findings
        ranks.append(planned)
    return tuple(ranks), tuple(found)


def plan_rank(ground: Ground, name: str, way: Way, link: Link, rank: int) -> tuple[RankPlan, tuple[Finding, ...]]:
    """Returns the plan of one box, and what the rules find in it."""
    shared = way.tensor * way.pipeline
    executor = ground.wish.executor
    own = msgspec.structs.replace(ground, model=share_of(way, ground.model), ranks=shared)
    if shared > 1:
        own = msgspec.structs.replace(own, told=rank_settings(own, way, link, rank, executor))
    report = make_report(own)
    ray = ray_of(own, link, rank) if shared > 1 and executor == "ray" else None
    plan = with_id(msgspec.structs.replace(report.plan, plan_id="", ray=ray))
    planned = RankPlan(rank, name, plan, report.budget)
    if ray is not None:
        planned = msgspec.structs.replace(planned, **{"instead" if rank else "before": ray.words})
    return planned, report.findings
