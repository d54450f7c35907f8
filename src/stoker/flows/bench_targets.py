"""Finds the service that `stoker bench` measures, and what is known of it."""

from __future__ import annotations

import msgspec

from stoker.box import LocalBox
from stoker.config import find_paths
from stoker.engines import find
from stoker.flows.targets import choose_service as choose_running
from stoker.flows.targets import target_of_service
from stoker.records import BenchSubject, Plan, ServiceView, Target
from stoker.store.services import read_saved


def choose_service(service: str | None, *, direct: bool) -> tuple[Target, BenchSubject]:
    """Returns a service of ours as it is measured: through the gateway, or at its engine. Raises Refused."""
    paths = find_paths()
    view = choose_running(paths, service)
    target = target_of_service(paths, view)
    plan = next((one.plan for one in read_saved(paths.database) if one.plan.service == view.name), None)
    chosen = _past_the_gateway(target) if direct else target
    return chosen, _subject(view, plan, chosen)


def _past_the_gateway(target: Target) -> Target:
    return msgspec.structs.replace(target, url=f"{target.engine_url}/v1", key=target.engine_key)


def _subject(view: ServiceView, plan: Plan | None, target: Target) -> BenchSubject:
    """Returns what is known of a service of ours; its engine's words hold no key, which goes through the environment."""
    is_rendered = plan is not None and plan.is_engine
    image = plan.image if plan else None
    return BenchSubject(
        url=target.url, model=view.model, service=view.name, engine=plan.engine if plan and plan.is_engine else None,
        engine_version=view.engine_version, image_digest=image.partition("@")[2] or None if image else None,
        model_revision=plan.revision if plan else None, plan_id=view.plan_id,
        flags=find(plan.engine).render(plan, plan.port).argv if plan and is_rendered else None,
        machine=LocalBox().uname()[0],
    )  # fmt: skip
