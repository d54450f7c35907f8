"""Plans one model over several boxes: reads what is known of each, and prints what each is to start."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.config import find_paths
from stoker.door_tables import check_boxes
from stoker.errors import Refused, WrongUse
from stoker.facts.machine.boxes import THIS, read_box
from stoker.flows.planning import read_ground
from stoker.flows.rendering import FIRST_PORT
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.names import check_no_secret
from stoker.launch.ranks import first_launches, in_order, rank_container, rank_launch
from stoker.plan.secrets import hide_words, without_secrets
from stoker.plan.spread.report import check_spread, make_spread
from stoker.plan.written.quoting import say_command
from stoker.records import LaunchSpec, Machine, Wish
from stoker.records.spread import RankPlan, SpreadReport

FORMS = ("argv", "docker", "podman")


def spread_on(wish: Wish) -> SpreadReport:
    """Returns the report on a service over the boxes that it names, the head first."""
    check_boxes(wish, "the service")
    machines = [read_known(name) for name in wish.boxes]
    ground = read_ground(wish, wish.boxes[0] if _is_this(wish.boxes[0]) else _place(wish.boxes[0]))
    return make_spread(ground, wish.boxes, machines)


def read_known(name: str) -> Machine:
    """Returns what is known of a box: this one, a file of facts, `boxes/NAME.json` beside stoker.toml, or shipped."""
    return read_box(_place(name))


def _place(name: str) -> str:
    kept = find_paths().config.parent / "boxes" / f"{Path(name).name}.json"
    return str(kept) if "/" not in name and not _is_this(name) and kept.exists() else name


def _is_this(name: str) -> bool:
    return name == THIS


def render_ranks(report: SpreadReport, form: str) -> str:
    """Returns the launch of every rank, in the order of their starts; raises Refused where a finding forbids it."""
    if form not in FORMS:
        raise WrongUse(
            f"ranks are not rendered as {form}", next_step=f"choose one of {', '.join(FORMS)}, or `stoker export`"
        )
    ranks = in_order(check_spread(report))
    shown = [f"# rank {rank.rank}, on {rank.box}\n{_words(rank, report, form)}" for rank in ranks]
    first = [f"# Ray's head, on {one.box}; it stays\n{_say(one.spec)}" for one in first_launches(report, FIRST_PORT)]
    return "\n".join((*first, *shown))


def _words(rank: RankPlan, report: SpreadReport, form: str) -> str:
    port = rank.plan.port or FIRST_PORT
    if form != "argv":
        if rank.before or rank.instead:
            raise Refused(
                "Ray's own processes are not rendered as containers", next_step="use argv inside a container of yours"
            )
        launch = rank_container(rank, port, has_rdma=report.link.kind == "rdma")
        return say_command((render_docker_run if form == "docker" else render_podman_run)(launch))
    if rank.plan.image is not None:
        raise Refused(
            f"{report.service} runs in the image {rank.plan.image}, of which the engine's words alone say nothing",
            next_step="`--render docker` (or podman) prints the container of each rank",
        )
    found = rank_launch(rank, port)
    check_no_secret(report.service, found.spec.environment, found.spec.argv)
    return _say(found.spec)


def _say(spec: LaunchSpec) -> str:
    variables = tuple(f"{name}={value}" for name, value in spec.environment)
    return say_command((*(("env", *variables) if variables else ()), *spec.argv))


def spread_without_secrets(report: SpreadReport) -> SpreadReport:
    """Returns the report with the values of keys and tokens left out, as it may be shown."""
    ranks = tuple(
        msgspec.structs.replace(
            rank,
            plan=msgspec.structs.replace(
                rank.plan, program=hide_words(rank.plan.program), settings=without_secrets(rank.plan.settings)
            ),
        )
        for rank in report.ranks
    )
    return msgspec.structs.replace(report, ranks=ranks)
