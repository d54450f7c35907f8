"""The whole answer for a service over several boxes: the ways side by side, the one to take, and each box's plan. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.errors import Refused
from stoker.plan.ground import Ground
from stoker.plan.report import make_report
from stoker.plan.speed.from_model import served_of
from stoker.plan.speed.links import costs_of
from stoker.plan.speed.memory import memory_of
from stoker.plan.speed.of_plan import drafting_of
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.ways import Load, Way, load_of
from stoker.plan.spread.linking import Place, link_of, with_places
from stoker.plan.spread.ranks import check_can_spread, plan_ranks
from stoker.plan.spread.sizes import share_of, ways_of, why_not
from stoker.plan.spread.worth import choose_way, kind_of, with_speeds
from stoker.records import Budget, Finding, Machine, Plan, Report
from stoker.records.ranks import Link
from stoker.records.speed import WayView
from stoker.records.spread import SpreadReport

USUAL_PROMPT = 1000
JUMBO, MTU_RULE = 9000, "cx7-config-not-persistent"
TOO_BIG = "budget-does-not-fit"


def make_spread(
    ground: Ground, names: Sequence[str], machines: Sequence[Machine], places: Sequence[Place] = ()
) -> SpreadReport:
    """Returns the report on a service over these boxes, the head first; raises Refused where no boxes can serve it so.

    `places` are where the boxes reach each other already, for a link that has no ports for RDMA.
    """
    check_can_spread(ground)
    one = make_report(ground)
    link, sizes = with_places(link_of(names, machines), places), ways_of(len(names))
    grounds = [msgspec.structs.replace(ground, machine=machine, running=()) for machine in machines]
    ways = [_view(way, grounds, one) for way in sizes]
    load = _load(ground, one.plan)
    if load is not None and all((memory := memory_of(machine)) and memory.fitted for machine in machines):
        costs = costs_of(link.kind, min((rank.rate_gbit for rank in link.ranks if rank.rate_gbit), default=None))
        counts = sorted({1, _requests(one.plan)})
        one_is_enough = [ways[0].fits is not False and not _has_more_cache(view, ways[1]) for view in ways]
        ways = [
            with_speeds(view, way, load, costs, load_fit(), counts, fits_one=enough)
            for view, way, enough in zip(ways, sizes, one_is_enough, strict=True)
        ]
    chosen, because, against = choose_way(ways, ground.wish.split)
    ranks, found = ((), ()) if chosen is None else plan_ranks(grounds, names, sizes[ways.index(chosen)], link)
    findings = (*against, *_of_link(link, chosen), *_others(found))
    return SpreadReport(ground.wish.name, tuple(names), link, tuple(ways), chosen, because, ranks, findings)


def _view(way: Way, grounds: Sequence[Ground], one: Report) -> WayView:
    view = WayView(kind_of(way), way.boxes, way.tensor, way.pipeline, why_not=why_not(way, grounds[0].model))
    budgets = [_budget(way, ground) for ground in grounds[: way.boxes]] if way.boxes > 1 else [one.budget]
    known = [budget for budget in budgets if budget is not None]
    if len(known) < len(budgets):
        return view
    return msgspec.structs.replace(
        view, fits=all(budget.fits_machine for budget in known), need_bytes=max(budget.total_bytes for budget in known),
        kv_tokens=_kv_tokens(way, known),
    )  # fmt: skip


def _has_more_cache(view: WayView, copies: WayView) -> bool:
    """Whether the boxes hold more tokens together than as copies, whose weights are there once a box: no rate tells that."""
    return (view.kv_tokens or 0) > (copies.kv_tokens or 0)


def _budget(way: Way, ground: Ground) -> Budget | None:
    part = share_of(way, ground.model)
    shared = way.tensor * way.pipeline
    return make_report(msgspec.structs.replace(ground, model=part, ranks=shared)).budget


def _kv_tokens(way: Way, budgets: Sequence[Budget]) -> int | None:
    """The tokens of all caches: each copy's own; of a shared model the fullest box's, for all hold the same tokens."""
    counts = [budget.kv_tokens for budget in budgets if budget.kv_tokens is not None]
    return min(counts) * way.copies if counts and len(counts) == len(budgets) else None


def _load(ground: Ground, plan: Plan) -> Load | None:
    served = served_of(ground.model, ground.engine)
    if served is None:
        return None
    return load_of(served, ground.model.hidden_size, USUAL_PROMPT, drafting_of(plan, ground.draft, load_fit()))


def _requests(plan: Plan) -> int:
    said = next((one.value for one in plan.settings if one.name == "parallel"), 1)
    return said if isinstance(said, int) else 1


def _of_link(link: Link, chosen: WayView | None) -> list[Finding]:
    if chosen is None or chosen.kind == "replicas":
        return []
    if link.kind == "rdma":
        return _of_sizes([rank.mtu for rank in link.ranks])
    what = "what connects the boxes is unknown" if link.kind == "unknown" else "the boxes have no link for RDMA"
    fix = "write their facts with `stoker facts --json` on each box, and give both ends of the cable an address"
    return [Finding("warn", "spread-link", what, link.because, fix, severity="slow", standing="measured")]


def _of_sizes(sizes: Sequence[int | None]) -> list[Finding]:
    """What is wrong with the packets' size: two ends that differ do not hear each other, and small ones are slow."""
    known = {size for size in sizes if size is not None}
    if len(known) < 2 and min(known, default=JUMBO) >= JUMBO:
        return []
    said = " and ".join(str(size) for size in sorted(known))
    what = f"the MTU of the link is {said}, and not {JUMBO} on both ends"
    why = "two sizes make retries run out, and small packets halve what a cable carries"
    fix = f"write MTU {JUMBO} for both ends into netplan, where it outlasts a reboot"
    return [Finding("warn", MTU_RULE, what, why, fix, severity="crash" if len(known) > 1 else "slow")]


def _others(found: Sequence[Finding]) -> list[Finding]:
    """Each finding once, whichever ranks have it; that a part does not fit a box is said of the way."""
    kept = {(one.rule, one.what): one for one in found if one.rule != TOO_BIG}
    return list(kept.values())


def check_spread(report: SpreadReport) -> SpreadReport:
    """Returns the report; raises Refused with the worst finding where one forbids it."""
    check_findings(report.findings)
    return report


def check_findings(findings: Sequence[Finding]) -> None:
    """Raises Refused with the first finding that forbids."""
    worst = next((one for one in findings if one.level == "forbid"), None)
    if worst is not None:
        raise Refused(worst.what, why=worst.why, next_step=worst.fix, rule=worst.rule)
