"""Makes the whole answer to a wish: the plan, its budget, what is wrong with it, and what else there is. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.engines import find, words_of
from stoker.errors import Refused
from stoker.facts.engine.catalogs import load_all
from stoker.facts.engine.flags import find_flag
from stoker.plan.abilities import read_abilities
from stoker.plan.alternatives import rank_alternatives
from stoker.plan.budget import CACHE, card_need_bytes, declared_budget, room_of
from stoker.plan.choose import with_id
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.flag_findings import find_wrong_flags
from stoker.plan.gate import with_gate
from stoker.plan.ground import Ground
from stoker.plan.lint import by_level
from stoker.plan.llamacpp import is_all_offloaded, offloaded_share, plan_llamacpp
from stoker.plan.room import Claim, to_stop, together_share
from stoker.plan.secrets import hide_words, without_secrets
from stoker.plan.serving import Served, plan_serving
from stoker.plan.speed.of_plan import predict_plan
from stoker.plan.wishes import USER, check_wish
from stoker.records import GIB, Budget, Finding, Level, MissingFile, Model, Plan, Report, Setting, SpeedView, say_bytes
from stoker.rules.match import match_rules

NATIVE = "mistral"
TOO_BIG, NOT_NOW, NOT_WHOLE = "budget-does-not-fit", "budget-not-now", "model-not-whole"


def make_report(ground: Ground) -> Report:
    """Returns the report on a wish; raises Refused where the wish contradicts itself.

    What the rules forbid is a finding of the report, not an error: the caller decides what to do with a forbidden plan.
    """
    model, others = ground.model, rank_alternatives(ground.model)
    if ground.engine == LLAMACPP:
        plan, budget, findings = plan_llamacpp(ground)
        context = 0
    else:
        engine = find(ground.engine)
        check_wish(ground.wish, ground.engine, engine.drafting)
        served = plan_serving(ground, engine)
        plan, budget, context = _plan(ground, served), served.budget, served.context
        findings = (*served.findings, *_wrong_flags(ground, plan))
    counted = budget
    if ground.wish.claim_gib is not None:
        budget = declared_budget(budget, int(ground.wish.claim_gib * GIB))
        plan = with_id(msgspec.structs.replace(plan, memory_need_bytes=budget.total_bytes, memory_because="declared"))
    plan = with_gate(plan, ground.wish, model)
    # Whose owner knows the memory better than the budget does, knows the cache better too.
    kv_tokens = budget.kv_tokens or None if ground.wish.claim_gib is None else None
    plan = msgspec.structs.replace(
        plan, kv_tokens=kv_tokens, abilities=read_abilities(plan, model), card_need_bytes=_on_card(ground, plan, counted)
    )
    found = (
        *_of_model(model, ground.engine),
        *(_of_layers(plan, ground) or _of_budget(budget, plan, context, ground)),
        *findings,
        *_beside(ground, budget),
    )
    left = left_to_engine(ground, plan)
    return Report(plan, budget, ground.engine_because, tuple(by_level(found)), left, others, _speed(ground, plan))


def _on_card(ground: Ground, plan: Plan, counted: Budget) -> int:
    """How much of what a plan needs lies on a card of its own, by the budget as it was counted."""
    on_card_bytes = card_need_bytes(counted, ground.machine, plan.memory_need_bytes)
    return int(on_card_bytes * offloaded_share(plan, ground.model))


def _speed(ground: Ground, plan: Plan) -> SpeedView | None:
    """What is predicted; None where part of the model may be computed beside the card that the prediction is of."""
    is_of_card = room_of(ground.machine, {}).pool == "gpu"
    if is_of_card and not is_all_offloaded(plan, ground.model):
        return None
    return predict_plan(plan, ground.model, ground.machine, ground.draft)


def left_to_engine(ground: Ground, plan: Plan) -> tuple[Setting, ...]:
    """Returns the choices that matter and that nobody made, with the engine's default; empty where its flags are unknown."""
    catalog, said = ground.catalog, {one.name for one in plan.settings}
    if catalog is None:
        return ()
    flags = [match.flag for name in find(ground.engine).notable if (match := find_flag(catalog, name))]
    why, at_start = "the engine's default", "decided at start"
    return tuple(
        Setting(one.name, one.default if one.default is not None else at_start, why) for one in flags if one.name not in said
    )


def _beside(ground: Ground, budget: Budget) -> list[Finding]:
    """What the rules say of running this beside what runs already."""
    if not ground.running:
        return []
    share = together_share(budget.total_bytes, ground.running, ground.machine.memory.total_bytes)
    rules = [rule for rule in ground.rules if "together_share" in rule.wrong]
    return match_rules(rules, ground.facts() | {"together_share": round(share, 3)})


def _wrong_flags(ground: Ground, plan: Plan) -> list[Finding]:
    """What is wrong with the user's flags, as the flags of the engine's version tell."""
    if ground.catalog is None:
        return []
    said = [one for one in plan.settings if one.name.startswith("--") and one.because == USER]
    words = words_of(said)
    if not words:
        return []
    return find_wrong_flags(words, ground.catalog, load_all(ground.engine), exact=not ground.near.why)


def _plan(ground: Ground, served: Served) -> Plan:
    wish, budget = ground.wish, served.budget
    parts = " + ".join(f"{line.name} {say_bytes(line.need_bytes)}" for line in budget.lines if line.need_bytes)
    return with_id(
        Plan(
            plan_id="",
            service=wish.name,
            model=wish.served_name or wish.name,
            model_path=ground.model.path,
            revision=ground.model.digest,
            engine=ground.engine,
            server=wish.server,
            port=wish.port or 0,
            settings=served.settings,
            memory_need_bytes=budget.total_bytes,
            memory_because=parts,
            engine_version=ground.version,
            group=ground.wish.group,
            image=wish.image,
            program=wish.program,
            mounts=tuple((one.partition(":")[0], one.partition(":")[2]) for one in wish.mounts),
        )
    )


def _of_model(model: Model, engine: str) -> tuple[Finding, ...]:
    """What the model's folder lacks, and what is wrong with it; what this engine loads without is only warned of."""
    layouts = set(model.layouts) & set(find(engine).layouts)
    loads, is_native = bool(layouts), NATIVE in layouts  # Mistral's own form is whole without Transformers' files
    missing = () if is_native else tuple(_missing(model, file, "warn" if loads else "forbid") for file in model.missing)
    fix = "fetch what is missing" if model.missing else "fetch the model again, or another release of it"
    return missing + tuple(
        Finding("warn" if loads else "forbid", NOT_WHOLE, problem, "its own files say so", fix, standing="measured")
        for problem in model.problems
    )


def _missing(model: Model, file: MissingFile, level: Level) -> Finding:
    where = f"copy it from {file.take_from}" if file.take_from else "fetch it from the model's repository"
    return Finding(
        level, NOT_WHOLE, f"{model.name} lacks {file.name}", file.why or "no engine loads it without that file",
        f"{where} (a guess by its name: look before you copy)" if file.take_from and file.is_guess else where,
        standing="measured",
    )  # fmt: skip


def _of_layers(plan: Plan, ground: Ground) -> tuple[Finding, ...]:
    """What is wrong with the number of layers that llama.cpp was told to put on a card."""
    card = room_of(ground.machine, {})
    if plan.engine != LLAMACPP or plan.card_need_bytes <= card.usable_bytes:
        return ()
    why = f"they take {say_bytes(plan.card_need_bytes)}, and the card has {say_bytes(card.usable_bytes)}"
    fix = "set a smaller `gpu_layers`, or leave it to llama.cpp"
    what = f"the layers of {ground.model.name} that are to lie on the card do not fit there"
    return (Finding("forbid", TOO_BIG, what, why, fix, severity="oom"),)


def _of_budget(budget: Budget, plan: Plan, context: int, ground: Ground) -> tuple[Finding, ...]:
    need, usable, model = say_bytes(budget.total_bytes), say_bytes(budget.usable_bytes), ground.model
    if not budget.fits_machine:
        return (_too_big(budget, model, context, need, usable),)
    if budget.fits_now is False and budget.available_bytes is not None:
        is_on_card = room_of(ground.machine, {}).pool == "gpu" and is_all_offloaded(plan, ground.model)
        running = [msgspec.structs.replace(one, held_bytes=one.card_bytes) if is_on_card else one for one in ground.running]
        return (_not_now(budget, model, need, running),)
    return ()


def _not_now(budget: Budget, model: Model, need: str, running: Sequence[Claim]) -> Finding:
    available = budget.available_bytes or 0
    why = f"it needs {need} and leaves a reserve, and {say_bytes(available)} are available now"
    stops = to_stop(budget.total_bytes + budget.kept[-1].need_bytes, available, running)
    fix = f"stop {' and '.join(stops)}" if stops else "end what holds the memory; `stoker facts` names it"
    return Finding("warn", NOT_NOW, f"{model.name} does not fit beside what runs now", why, fix, severity="oom")


def _too_big(budget: Budget, model: Model, context: int, need: str, usable: str) -> Finding:
    besides_cache = sum(line.need_bytes for line in budget.lines if line.name != CACHE)
    why, fix = f"it needs {need}, and this machine has {usable} for engines", "give a smaller context or fewer requests"
    if besides_cache > budget.usable_bytes:
        fix = "choose a smaller quantisation, or a smaller model"
    elif budget.total_bytes <= budget.usable_bytes:
        why = f"the cache that is left holds {budget.kv_requests} of one request of {context:,} tokens"
        fix = "give a smaller context, or choose a smaller quantisation"
    return Finding("forbid", TOO_BIG, f"{model.name} does not fit this machine", why, fix, severity="oom")


def check_report(report: Report) -> Plan:
    """Returns the plan of a report; raises Refused with the worst finding where one forbids it."""
    worst = next((finding for finding in report.findings if finding.level == "forbid"), None)
    if worst is None:
        return report.plan
    raise Refused(worst.what, why=worst.why, next_step=worst.fix, rule=worst.rule)


def report_without_secrets(report: Report) -> Report:
    """Returns the report with the values of keys and tokens left out, as it may be shown and stored."""
    words, settings = hide_words(report.plan.program), without_secrets(report.plan.settings)
    plan = msgspec.structs.replace(report.plan, program=words, settings=settings)
    return msgspec.structs.replace(report, plan=plan)
