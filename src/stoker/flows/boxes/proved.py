"""A linked box's service as `stoker bench` and `stoker verify` ask it: through this box's door, of that box alone.

Through the door and not by the other box's daemon: what is measured is what this door's clients get, the processes that
measure take nothing from the engine's own machine, and a link that may only ask is enough. Each result names the box.
"""

from __future__ import annotations

from stoker.config import Paths, read_config
from stoker.engines import find
from stoker.flows.boxes.link_file import find_link, read_links
from stoker.flows.boxes.linked import LinkedDaemon
from stoker.flows.client import Daemon
from stoker.flows.targets import LOOPBACK, choose_of, read_running
from stoker.records import BenchSubject, Plan, ServiceView, Target


def choose_there(paths: Paths, box: str, name: str | None) -> ServiceView:
    """Returns a running service of a linked box, which needs no name where it is the only one; raises Refused."""
    link = find_link(read_links(paths.links_file), box)
    return choose_of(LinkedDaemon(link).status().services, name, box)


def target_there(paths: Paths, box: str, service: ServiceView) -> Target:
    """Returns it as this door's clients see it; its engine's own pages are that box's alone."""
    daemon = read_running(paths)
    return Target(
        url=f"{daemon.url}/v1", model=service.model, key=daemon.key, box=box,
        on_purpose=read_config(paths.config).gateway.host not in LOOPBACK,
    )  # fmt: skip


def subject_there(paths: Paths, box: str, service: ServiceView, target: Target) -> BenchSubject:
    """Returns what is known of it here; its engine's words and image only where the link may read plans."""
    link = find_link(read_links(paths.links_file), box)
    plan = LinkedDaemon(link).plan_of(service.name) if link.may_act else None
    is_rendered = plan is not None and plan.is_engine
    return BenchSubject(
        url=target.url, model=service.model, service=service.name, box=box, engine=service.engine,
        engine_version=service.engine_version, plan_id=service.plan_id,
        model_revision=_revision(read_running(paths), box, service.name),
        image_digest=(plan.image or "").partition("@")[2] or None if plan is not None else None,
        flags=_flags(plan) if plan is not None and is_rendered else None,
    )  # fmt: skip


def _flags(plan: Plan) -> tuple[str, ...]:
    return find(plan.engine).render(plan, plan.port).argv


def _revision(daemon: Daemon, box: str, service: str) -> str | None:
    replicas = (one for view in daemon.boxes().boxes if view.name == box for one in view.replicas)
    return next((one.revision for one in replicas if one.service == service), None)
