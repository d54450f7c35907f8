"""The ranks of one model over several boxes as programs or containers: what to start on which box, the head last. Pure."""

from __future__ import annotations

import msgspec

from stoker.launch.from_plan import container_of, launch_of, on_own_network
from stoker.launch.ray import beside_ray
from stoker.records import ContainerLaunch
from stoker.records.spread import RankLaunch, RankPlan, SpreadReport


def in_order(report: SpreadReport) -> tuple[RankPlan, ...]:
    """Returns the ranks as they are to be started: workers wait for the head, and a head without workers gives up."""
    return tuple(reversed(report.ranks)) if _is_shared(report) else report.ranks


def _is_shared(report: SpreadReport) -> bool:
    return report.chosen is not None and report.chosen.kind in ("tensor", "pipeline")


def rank_launch(rank: RankPlan, port: int) -> RankLaunch:
    """Returns the words of one rank; under Ray a worker's box runs Ray alone."""
    spec = launch_of(rank.plan, port)
    if rank.instead:
        spec = msgspec.structs.replace(spec, argv=rank.instead)
    return RankLaunch(rank.rank, rank.box, beside_ray(spec) if rank.before else spec, rank.before)


def first_launches(report: SpreadReport, port: int) -> tuple[RankLaunch, ...]:
    """Returns what has to run before all ranks and beside them: Ray's head, where Ray starts the engine's processes."""
    return tuple(
        RankLaunch(rank.rank, rank.box, msgspec.structs.replace(launch_of(rank.plan, port), argv=rank.before))
        for rank in report.ranks
        if rank.before
    )


def rank_container(rank: RankPlan, port: int, has_rdma: bool) -> ContainerLaunch:
    """Returns the container of one rank, on the host's own network."""
    launch = on_own_network(container_of(rank.plan, port), has_rdma)
    return msgspec.structs.replace(launch, name=f"{launch.name}-{rank.rank}")
