"""Puts a service's plan beside the one that `stoker.toml` would give now, and beside the one that `rollback` leads to."""

from __future__ import annotations

import asyncio

import msgspec

from stoker.config import Config
from stoker.errors import StokerError
from stoker.plan.differing import put_beside
from stoker.plan.secrets import hide_words, without_secrets
from stoker.records import Plan, SpeedView
from stoker.records.looking import PlansView

NO_NEXT = "it does not stand in stoker.toml: a start takes the plan that it has"


def shown(plan: Plan) -> Plan:
    """Returns a plan without its secrets."""
    return msgspec.structs.replace(plan, settings=without_secrets(plan.settings), program=tuple(hide_words(plan.program)))


async def view_plans(here: Plan, config: Config, found: Plan | StokerError | None, former: Plan | None) -> PlansView:
    """Returns them; `found` is what a start would have now: None where it takes what it has, or why it cannot be planned."""
    speed, no_speed = await asyncio.to_thread(_predict, here, config)
    is_plan = isinstance(found, Plan)
    return PlansView(
        shown(here), put_beside(here, found) if isinstance(found, Plan) else None,
        "" if is_plan else NO_NEXT if found is None else str(found),
        put_beside(here, former) if former else None, speed, no_speed,
    )  # fmt: skip


def _predict(plan: Plan, config: Config) -> tuple[SpeedView | None, str]:
    """Returns how fast the model should run here without drafts, and what was measured; or why nobody can tell."""
    from stoker.flows.predicting import Asking, predict_model

    if not plan.is_engine:
        return None, "nothing is known of a command's model"
    target = plan.service if plan.service in config.services else plan.model_path
    try:
        view = predict_model(target, config, Asking(engine=plan.engine))
    except StokerError as problem:
        return None, "; ".join(part for part in (problem.what, problem.why) if part)
    return view, view.why
