"""Holds a launch that somebody wrote against the rules and against what the engine's version knows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from stoker.engines import engine_of_image, find, names
from stoker.plan.situation import (
    OPEN_HOSTS,
    Facts,
    assumed_version,
    flag_facts,
    image_facts,
    machine_facts,
    model_facts,
    numbers_of,
    share_facts,
)
from stoker.plan.written.flags import flags_of
from stoker.plan.written.programs import find_program
from stoker.plan.written.restarts import is_restart
from stoker.records import Catalog, Finding, Machine, Model, Recipe, Rule
from stoker.rules.match import LEVELS, match_rules, preferred

# How weights are stored, as hub names say it; only a hint where the model itself is not at hand.
QUANTISATION = re.compile(r"(nvfp4|mxfp4|fp8|awq|gptq|int4|int8|w4a16|bf16|q\d_k_[sml]|q\d_0|iq\d_\w+)", re.IGNORECASE)
LOOPBACK_PUBLISH = ("127.0.0.1:", "[::1]:", "localhost:")
LOOKS_AT_WHAT_IS_THERE = ("docker:", "unit:", "grant", "lost$", "restarts")
MODULE = "vllm.entrypoints.openai.api_server"
NOT_UNDERSTOOD = "not-understood"


def lint_recipe(
    recipe: Recipe, machine: Machine, rules: Sequence[Rule], model: Model | None = None, catalog: Catalog | None = None
) -> list[Finding]:
    """Returns what is wrong with a launch on a machine, the worst first, each with the place where it stands."""
    situation = recipe_facts(recipe, machine, model, catalog)
    if version := assumed_version(rules, situation):
        situation["version"] = version
    situation |= _together(recipe, machine, rules)
    found = match_rules([rule for rule in rules if _concerns(rule, recipe)], situation)
    return by_level(
        msgspec.structs.replace(finding, where=place_of(recipe)) for finding in (*found, *_not_understood(recipe))
    )


def _not_understood(recipe: Recipe) -> list[Finding]:
    """Returns a warning for each part that is not read: that nothing was found does not mean that nothing is wrong."""
    return [
        Finding(
            level="warn",
            rule=NOT_UNDERSTOOD,
            what=said,
            why="what is not read is not held against any rule",
            fix="write it out, or give the file or the command that has it",
            standing="measured",
            severity="silent",
        )
        for said in recipe.unread
    ]


def by_level(findings: Iterable[Finding]) -> list[Finding]:
    """Returns findings with the worst first."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def place_of(recipe: Recipe) -> str:
    """Returns where a launch stands: 'FILE:LINE', or as much of it as is known."""
    return f"{recipe.source}:{recipe.line}" if recipe.source and recipe.line else recipe.source


def _concerns(rule: Rule, recipe: Recipe) -> bool:
    """A launch without an engine is held only against rules that look at what is there; a hidden command lacks no flag."""
    if recipe.engine is None:
        return any(name.startswith(LOOKS_AT_WHAT_IS_THERE) for name in rule.wrong)
    return not (_is_hidden(recipe) and any(name.startswith("--") and test == "absent" for name, test in rule.wrong.items()))


def _is_hidden(recipe: Recipe) -> bool:
    """Tells whether a launch is known by its image alone: the engine's command stands in a script, or in another file."""
    own = [recipe.program[place:] for place in range(len(recipe.program))]
    return recipe.image is not None and not recipe.words and not any(map(find_program, own))


def _together(recipe: Recipe, machine: Machine, rules: Sequence[Rule]) -> Facts:
    """Returns what a launch and those that the same file starts before it take; a rule tells what one takes unasked."""
    shares = [_share_of(one, machine, rules) for one in (recipe, *recipe.beside)]
    known = [share for share in shares if share is not None]
    return {"together_share": round(sum(known), 3)} if recipe.beside and known else {}


def _share_of(recipe: Recipe, machine: Machine, rules: Sequence[Rule]) -> float | None:
    facts = recipe_facts(recipe, machine)
    told = facts.get("memory_share")
    unasked = preferred(rules, facts).get("unasked_share")
    found = told if told is not None else unasked[0] if unasked else None
    return found if isinstance(found, float) else None


def recipe_facts(recipe: Recipe, machine: Machine, model: Model | None = None, catalog: Catalog | None = None) -> Facts:
    """Returns a launch by the rules' names."""
    facts: Facts = {**machine_facts(machine), **(image_facts(recipe.image) if recipe.image else {})}
    if recipe.engine:
        facts["engine"] = recipe.engine
    if catalog is not None:
        facts.setdefault("version", catalog.version)
    facts |= model_facts(model, None, machine) if model else _by_name(recipe)
    flags = flags_of(recipe.words, catalog)
    facts |= flag_facts({name: _value(values) for name, values in flags.items()})
    facts |= {f"${name}": value for name, value in recipe.environment.items()}
    facts |= {f"lost${name}": value for name, value in recipe.lost_environment.items()}
    facts |= {"lost": tuple(recipe.lost_environment)} if recipe.lost_environment else {}
    facts |= {f"docker:{name}": _value(values) for name, values in recipe.container.items()}
    facts |= {f"unit:{name}": _value(values) for name, values in recipe.unit.items()}
    facts |= {"grant": recipe.grants} if recipe.grants else {}
    facts |= _restarts(recipe) | ({"model_unread": True} if _is_model_unread(recipe) else {})
    facts |= numbers_of(facts) | _reachable(recipe, facts)
    return facts | share_facts(facts)


def _restarts(recipe: Recipe) -> Facts:
    """What starts an engine's container again at once: docker's policy, or `docker restart`."""
    policy = recipe.container.get("restart", ()) if recipe.engine else ()
    return {"restarts": "now"} if is_restart(recipe) else {"restarts": policy[-1]} if policy else {}


def _is_model_unread(recipe: Recipe) -> bool:
    """Tells whether the model is a word alone behind a module that only reads a flag."""
    named = any(word == "--model" or word.startswith("--model=") for word in recipe.words)
    alone = recipe.words[:1] and not recipe.words[0].startswith("-")
    return bool(recipe.engine == "vllm" and recipe.program[-1:] == (MODULE,) and alone and not named)


def _value(values: tuple[str, ...]) -> str | bool | tuple[str, ...]:
    return True if not values else values[0] if len(values) == 1 else values


def _by_name(recipe: Recipe) -> Facts:
    """What the names tell of a model that is not at hand: its own, and its folder's outside the container."""
    if not recipe.model:
        return {}
    names = [recipe.model, *(host for host, inside in recipe.mounts if inside.rstrip("/") == recipe.model.rstrip("/"))]
    folders = [name.rstrip("/").rsplit("/", 1)[-1] for name in names]
    known = tuple(dict.fromkeys(name.lower() for name in (*names, *folders)))
    found = QUANTISATION.search(" ".join(known))
    return {"model": known} | ({"quantisation": found[1].lower()} if found else {})


def _reachable(recipe: Recipe, facts: Mapping[str, object]) -> Facts:
    """Whether others on the network reach the engine: through its own address, or through a published port."""
    if not recipe.engine:
        return {}
    keys = ("VLLM_API_KEY", "LLAMA_API_KEY")
    has_key = "--api-key" in facts or "--api-key-file" in facts or any(name in recipe.environment for name in keys)
    published = recipe.container.get("publish", ())
    network = recipe.container.get("network", ())
    if recipe.image and "host" not in network:
        is_open = any(not port.startswith(LOOPBACK_PUBLISH) for port in published)
    else:
        host = facts.get("--host")
        is_open = host in OPEN_HOSTS if host is not None else _opens_unasked(recipe.engine)
    return {"open_to_network": is_open, "has_key": has_key}


def _opens_unasked(engine: str) -> bool:
    return engine in names() and find(engine).opens_unasked


def engine_in(recipe: Recipe) -> str | None:
    """Returns the recipe's engine: the one its words start, else the one its image is known to hold."""
    return recipe.engine or (engine_of_image(recipe.image) if recipe.image else None)
