"""Writes a service's plan for those who outgrow Stoker: a Ray Serve LLM application, or Kubernetes manifests."""

from __future__ import annotations

from typing import Literal

from stoker.errors import WrongUse
from stoker.facts.machine.boxes import THIS
from stoker.flows.planning import report_on
from stoker.flows.spreading import spread_on
from stoker.launch.exported import Exported, exported_plan, exported_spread
from stoker.launch.kubernetes import Cluster, render_kubernetes
from stoker.launch.ray_serve import render_ray_serve
from stoker.plan.report import check_report
from stoker.plan.spread.report import check_spread
from stoker.records import Wish

Form = Literal["ray-serve", "kubernetes"]
FORMS: tuple[Form, ...] = ("ray-serve", "kubernetes")


def export_service(wish: Wish, form: Form, box: str | None = None, cluster: Cluster | None = None) -> str:
    """Returns the text; raises Refused where the plan is forbidden, or cannot be written so."""
    exported = _exported(wish, box)
    return render_ray_serve(exported) if form == "ray-serve" else render_kubernetes(exported, cluster or Cluster())


def _exported(wish: Wish, box: str | None) -> Exported:
    if not wish.boxes:
        report = report_on(wish, box or THIS)
        check_report(report)
        return exported_plan(report)
    if box is not None:
        raise WrongUse("the service names its boxes, and --on another one", next_step="leave --on out")
    return exported_spread(check_spread(spread_on(wish)))
