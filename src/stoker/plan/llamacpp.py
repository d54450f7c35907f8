"""The plan of a GGUF with llama.cpp, its budget, and what the rules say of it. Pure."""

from __future__ import annotations

import msgspec

from stoker.engines import find
from stoker.engines.llamacpp import COMPUTE_FLOOR_BYTES, COMPUTE_SHARE, PROCESS_BYTES
from stoker.errors import Refused
from stoker.plan.budget import CACHE, SIXTEEN_BIT_BYTES, budget_of, cache_bytes, kv_bytes_of, machine_room, room_of
from stoker.plan.cache_type import cache_value_bytes
from stoker.plan.choose import choose_plan, with_id
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.ground import Ground
from stoker.plan.prompt_cache import PROMPT_CACHE, SWITCH, prompt_cache_bytes
from stoker.plan.situation import flag_facts, numbers_of
from stoker.plan.written.flags import flags_of
from stoker.records import Budget, BudgetLine, Finding, Model, Plan, Setting, Wish
from stoker.rules.match import match_rules, preferred

ANY_PORT = 0
# What decides how the file is read; llama.cpp takes one of them.
LOADING = frozenset({"--load-mode", "--no-mmap", "--mmap", "--direct-io", "--dio", "--mlock"})
OFFLOAD = ("gpu_layers", "--n-gpu-layers", "--gpu-layers")
UNBOUNDED = f"the prompt cache, which nothing bounds: newer builds take 8,192 MiB unasked; `{PROMPT_CACHE}` bounds it"
VARIABLE = "LLAMA_ARG_"  # llama-server takes $LLAMA_ARG_LOAD_MODE for --load-mode; a flag would win over it


def plan_llamacpp(ground: Ground) -> tuple[Plan, Budget, tuple[Finding, ...]]:
    """Returns the plan, the memory it takes line by line, and the findings; raises Refused for what llama.cpp lacks."""
    wish = ground.wish
    _check_used(wish)
    chosen = choose_plan(wish, ground.model, ground.draft, ground.version, _prompt_bound(ground))
    plan = _in_image(_with_preferred(chosen, ground), ground)
    words = find(plan.engine).render(plan, ANY_PORT).argv
    said = {name: values if len(values) > 1 else (values or (True,))[0] for name, values in flags_of(words).items()}
    facts = ground.facts() | flag_facts(said)
    # The embedded engine takes no flags beyond its settings, so only a server of the user's can be told to do otherwise.
    is_theirs = wish.server or ground.image
    findings = match_rules(ground.rules, facts | numbers_of(facts)) if is_theirs else []
    return plan, _budget(ground, plan), tuple(findings)


def _with_preferred(plan: Plan, ground: Ground) -> Plan:
    """Adds the flags that rules prefer for a server of the user's and that nobody spoke of; the embedded one takes none."""
    said = (*ground.wish.flags, *(name.removeprefix(VARIABLE) for name in ground.wish.environment))
    if not ground.wish.server or any("--" + name.lower().replace("_", "-") in LOADING for name in said):
        return plan
    found = preferred(ground.rules, ground.facts())
    known = {name: chosen for name, chosen in found.items() if name in LOADING and ground.knows(name)}
    flags = tuple(Setting(name, value, rule.title, rule.id) for name, (value, rule) in known.items())
    return with_id(msgspec.structs.replace(plan, plan_id="", settings=(*plan.settings, *flags))) if flags else plan


def _prompt_bound(ground: Ground) -> Setting | None:
    """Returns the most that a rule lets the prompt cache take; None where the server's build may not know the flag."""
    found = preferred(ground.rules, ground.facts()).get(PROMPT_CACHE)
    if found is None or not ground.knows(SWITCH):
        return None
    value, rule = found
    return Setting(PROMPT_CACHE, value, f"{rule.title} (rule {rule.id})", rule.id)


def _check_used(wish: Wish) -> None:
    """Raises Refused for what llama.cpp is planned without."""
    server = wish.server if wish.image else None
    given = {"memory_share": wish.memory_share, "graph_batch": wish.graph_batch, "server": server}
    for name, value in given.items():
        if value is not None:
            raise Refused(
                f"`{name}` is set, and llama.cpp is planned without it" + (" in a container" if wish.image else ""),
                why="it would be ignored in silence",
                next_step=f"leave `{name}` out, or serve with another engine",
            )


def _in_image(plan: Plan, ground: Ground) -> Plan:
    """Returns the plan in its image: the server's words are the user's, else those that the image's maker gave it."""
    if ground.image is None:
        return plan
    entry = ground.environment.entrypoint if ground.environment and ground.environment.engine == LLAMACPP else ()
    mounts = tuple((one.partition(":")[0], one.partition(":")[2]) for one in ground.wish.mounts)
    program = ground.wish.program or entry
    return with_id(msgspec.structs.replace(plan, image=ground.image, program=program, mounts=mounts))


def offloaded_share(plan: Plan, model: Model) -> float:
    """Returns the share of the layers that llama.cpp was told to put on the card; other engines put all there.

    0 where it was not told: it then takes what it finds free there, or knows of no card, and nothing can be asked for it.
    """
    if plan.engine != LLAMACPP:
        return 1.0
    said = next((str(one.value) for one in plan.settings if one.name in OFFLOAD), "")
    if said == "all":
        return 1.0
    count = int(said) if said.isdecimal() else 0  # "auto" and -1 leave it to llama.cpp
    return min(1.0, count / model.layers) if model.layers else float(count > 0)


def is_all_offloaded(plan: Plan, model: Model) -> bool:
    """Tells whether all layers have to lie on the card."""
    return offloaded_share(plan, model) == 1


def _budget(ground: Ground, plan: Plan) -> Budget:
    total = next(int(str(one.value)) for one in plan.settings if one.name == "context_total")
    context = next(int(str(one.value)) for one in plan.settings if one.name == "context")
    models = [ground.model, ground.draft] if ground.draft else [ground.model]
    weights = sum(model.file_bytes for model in models)
    value_bytes, prompt_bytes = cache_value_bytes(plan.settings), prompt_cache_bytes(plan.settings)
    widths = (value_bytes, SIXTEEN_BIT_BYTES)
    one_request = sum(cache_bytes(model, context, 1, width) or 0 for model, width in zip(models, widths, strict=False))
    kv = kv_bytes_of(models, total, value_bytes)
    lines = (
        BudgetLine("weights", weights, "the files of the model" + (" and its draft" if ground.draft else "")),
        BudgetLine(CACHE, kv, f"{total:,} tokens at {value_bytes * 8:g} bits a value, shared by all requests"),
        BudgetLine("buffers", COMPUTE_FLOOR_BYTES + int(weights * COMPUTE_SHARE), "a floor and 5 % of the weights"),
        *_prompt_lines(prompt_bytes),
        BudgetLine("process", PROCESS_BYTES, "the server before any weights", "host"),
    )
    parameters = {name: value for name, (value, _) in preferred(ground.rules, ground.facts()).items()}
    numbers = {name: float(value) for name, value in parameters.items() if isinstance(value, int | float)}
    unknown = tuple(f"the KV cache of {model.name}" for model in models if model.kv_bytes_per_token is None)
    if prompt_bytes is None:
        unknown += (UNBOUNDED,)
    # What llama.cpp was not told to put on the card it computes from the machine's memory.
    room = (room_of if is_all_offloaded(plan, ground.model) else machine_room)(ground.machine, numbers)
    return budget_of(lines, room, numbers, kv, one_request, context, unknown)


def _prompt_lines(prompt_bytes: int | None) -> tuple[BudgetLine, ...]:
    if not prompt_bytes:
        return ()
    return (
        BudgetLine(
            "prompt cache", prompt_bytes, "at most; conversations that gave up their slot are kept for later", "host"
        ),
    )
