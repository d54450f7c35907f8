"""What a cluster's files are made of: a plan on one box, or the same plan's ranks over several. Pure."""

from __future__ import annotations

import re

from stoker.errors import Refused
from stoker.records import Plan, Record, Report, Setting
from stoker.records.spread import SpreadReport

# What a rank is told of its place: a cluster tells it by names of its own.
PLACES = ("--node-rank", "--master-addr", "--master-port", "--nnodes", "--dist-init-addr", "--headless")
OWN_ADDRESSES = ("$VLLM_HOST_IP", "$SGLANG_HOST_IP")
UNNAMED = re.compile(r"[^a-z0-9-]+")
LONGEST = 50


class Exported(Record, frozen=True):
    """A plan to be written for a cluster: copies, each over `size` boxes; `common` are the settings of all ranks."""

    plan: Plan
    size: int
    copies: int
    common: tuple[Setting, ...]
    because: str = ""
    has_rdma: bool = False

    @property
    def name(self) -> str:
        """The service's name as a cluster takes it: letters, digits and dashes."""
        return UNNAMED.sub("-", self.plan.service).strip("-")[:LONGEST].rstrip("-")


def exported_plan(report: Report) -> Exported:
    """Returns the plan of one box."""
    return Exported(_checked(report.plan), 1, 1, report.plan.settings, report.engine_because)


def exported_spread(report: SpreadReport) -> Exported:
    """Returns the plan of several boxes, by its head; what differs from rank to rank is left to the cluster."""
    if report.chosen is None:
        raise Refused(f"{report.service} has no plan over its boxes", why="; ".join(one.what for one in report.findings))
    first, others = report.ranks[0].plan, [rank.plan for rank in report.ranks[1:]]
    said = [{(one.name, str(one.value)) for one in other.settings} for other in others]
    common = tuple(one for one in first.settings if all((one.name, str(one.value)) in other for other in said))
    size = report.chosen.tensor * report.chosen.pipeline
    copies = len(report.ranks) // size
    return Exported(_checked(first), size, copies, common, report.because, report.link.kind == "rdma")


def _checked(plan: Plan) -> Plan:
    if not plan.is_engine or not plan.model_path:
        raise Refused(
            f"{plan.service} is a program of this machine, and no image is known that holds it",
            next_step="export a service that has an engine and a model",
        )
    return plan


def sentence(said: str) -> str:
    """Returns a reason as a sentence of its own."""
    return f"{said[:1].upper()}{said[1:].rstrip('.')}."


def told(exported: Exported) -> list[Setting]:
    """Returns the flags that all ranks share, without their places, each with its reason."""
    return [one for one in exported.common if one.name.startswith("--") and one.name not in PLACES]


def variables(exported: Exported) -> list[Setting]:
    """Returns the variables that all ranks share; each machine's own address is what the cluster knows."""
    return [one for one in exported.common if one.name.startswith("$") and one.name not in OWN_ADDRESSES]
