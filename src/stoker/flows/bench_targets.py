"""Finds the service that `stoker bench` measures, and what is known of it."""

from __future__ import annotations

import msgspec

from stoker.bench.asking import Asker
from stoker.bench.origin import Origin
from stoker.box import LocalBox
from stoker.config import find_paths
from stoker.engines import find
from stoker.errors import Refused
from stoker.flows.addresses import Address, target_of
from stoker.flows.targets import choose_service as choose_running
from stoker.flows.targets import target_of_service
from stoker.records import BenchSubject, Plan, ServiceView, Target
from stoker.store.services import read_saved


def target_at(address: Address) -> Target:
    """Returns an address as a target; without a name it is the only model served there. Raises WrongUse, Refused."""
    if address.url is None or address.model is not None:
        return target_of(address)
    target = target_of(msgspec.structs.replace(address, model=""))
    served = _served_models(target)
    if len(served) != 1:
        why = f"it serves {', '.join(sorted(served))}" if served else f"{target.url}/models lists none"
        raise Refused("name the model with --model", why=why)
    return msgspec.structs.replace(target, model=served[0])


def _served_models(target: Target) -> list[str]:
    asker = Asker(Origin(target.url, target.key))
    said = asker.read_json("GET", "/models")
    asker.close()
    listed = said.get("data") if isinstance(said, dict) else None
    names = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [name for name in names if isinstance(name, str) and name]


def choose_linked(service: str | None, box: str) -> tuple[Target, BenchSubject]:
    """Returns a service of a linked box as it is measured: through this box's door. Raises Refused, WrongUse."""
    from stoker.flows.boxes.proved import choose_there, subject_there, target_there

    paths = find_paths()
    view = choose_there(paths, box, service)
    target = target_there(paths, box, view)
    return target, subject_there(paths, box, view, target)


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
