"""Puts everything that is known of a launch into one table of names, as the rules speak of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from stoker.engines import image_parts, version_in_tag
from stoker.records import GIB, Environment, Machine, Model, Rule, Scalar, Setting
from stoker.rules.compare import Value, as_number
from stoker.rules.match import preferred

Facts = dict[str, Value]
NO_GPU = "none"
OPEN_HOSTS = ("0.0.0.0", "::", "*")


def machine_facts(machine: Machine) -> Facts:
    """Returns what the rules may know of a machine."""
    gpu = machine.gpus[0] if machine.gpus else None
    facts: Facts = {
        "arch": machine.arch,
        "memory_gib": round(machine.memory.total_bytes / GIB, 1),
        "driver": machine.driver,
        "cuda": machine.cuda,
        "sm": gpu.compute_capability if gpu else NO_GPU,
        "unified": machine.unified_memory,
        "busy_clock_mhz": gpu.busy_clock_mhz if gpu else None,
        "cuda_share": _cuda_share(machine),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _cuda_share(machine: Machine) -> float | None:
    if machine.cuda_visible_bytes is None or not machine.unified_memory:
        return None
    return round(machine.cuda_visible_bytes / machine.memory.total_bytes, 3)


def environment_facts(environment: Environment | None) -> Facts:
    """Returns what an image or a virtual environment on this machine tells of itself."""
    if environment is None:
        return {}
    facts: Facts = {"version": environment.version}
    if environment.kind == "image":
        facts["image_arch"] = environment.arch
    return {name: value for name, value in facts.items() if value is not None}


def model_facts(model: Model, draft: Model | None, machine: Machine | None) -> Facts:
    """Returns what the rules may know of a model and its draft."""
    facts: Facts = {
        "model": _names(model),
        "architecture": model.architecture,
        "model_type": model.model_type,
        "quantisation": (model.quantisation or "").lower() or None,
        "format": model.format,
        "moe": bool(model.experts) if model.layers else None,
        "hybrid": any(layers.kind == "state" for layers in model.cache) if model.cache else None,
        "mla": any(layers.kind == "mla" for layers in model.cache) if model.cache else None,
        "vision": model.has_vision,
        "tools": "tools" in model.template_features,
        "thinking": "thinking" in model.template_features,
        "missing": tuple(file.name for file in model.missing),
        "weights_gib": round(model.file_bytes / GIB, 2) if model.file_bytes else None,
    }
    if draft is not None and model.file_bytes:
        facts |= {"draft": _names(draft), "draft_share": round(draft.file_bytes / model.file_bytes, 3)}
    if machine is not None:
        weights_bytes = model.file_bytes + (draft.file_bytes if draft else 0)
        facts["weights_share"] = round(weights_bytes / machine.memory.total_bytes, 3)
    return {name: value for name, value in facts.items() if value is not None}


def _names(model: Model) -> tuple[str, ...]:
    folder = model.path.rstrip("/").rsplit("/", 1)[-1]
    return tuple(dict.fromkeys(name.lower() for name in (model.repository, folder, model.name) if name))


def image_facts(image: str) -> Facts:
    """Returns what an image's name tells: its repository, its tag, and the version where the tag has one."""
    repository, tag = image_parts(image)
    facts: Facts = {"image": repository, "build": tag or "latest"}
    version = version_in_tag(tag)
    return facts | ({"version": version} if version else {})


def flag_facts(flags: Mapping[str, Value]) -> Facts:
    """Returns flags as the rules name them, with what follows from them; a JSON value's entries have names of their own."""
    facts: Facts = dict(flags)
    for name, value in flags.items():
        facts |= _entries(name, value)
    return facts | _network(facts) | _speculation(facts) | _graphs(facts) | _nodes(facts)


def _entries(name: str, value: Value) -> Facts:
    text = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        tree = json.loads(text)
    except ValueError:
        return {}
    return {f"{name}.{key}": entry for key, entry in tree.items() if isinstance(entry, str | int | float | bool)}


def _network(facts: Mapping[str, Value]) -> Facts:
    host = _last(facts.get("--host"))
    return {"open_to_network": host in OPEN_HOSTS if host is not None else False, "has_key": "--api-key" in facts}


def _speculation(facts: Mapping[str, Value]) -> Facts:
    said = next((facts[name] for name in SPECULATION_FLAGS if name in facts), None)
    if said is not None:
        return {"speculation": str(_last(said)).lower()}
    # vLLM finds the method out by itself where its configuration names none: unknown, not off.
    return {} if "--speculative-config" in facts else {"speculation": "off"}


def _nodes(facts: Mapping[str, Value]) -> Facts:
    numbers = [number for name in NODE_FLAGS for number in _numbers(facts.get(name))]
    return {"nodes": int(max(numbers, default=1))}


def _graphs(facts: Mapping[str, Value]) -> Facts:
    sizes = [number for name in GRAPH_FLAGS for number in _numbers(facts.get(name))]
    running = [number for name in RUNNING_FLAGS for number in _numbers(facts.get(name))]
    found: Facts = {"graph_batch": max(sizes)} if sizes else {}
    if sizes and running:
        found["graph_below_concurrency"] = max(sizes) < max(running)
    return found


GRAPH_FLAGS = (
    "--cuda-graph-max-bs",
    "--cuda-graph-max-bs-decode",
    "--cuda-graph-bs",
    "--cuda-graph-bs-decode",
    "--max-cudagraph-capture-size",
    "--cudagraph-capture-sizes",
)
SPECULATION_FLAGS = ("--speculative-algorithm", "--speculative-config.method", "--spec-type")
NODE_FLAGS = ("--nnodes", "--num-nodes")
RUNNING_FLAGS = ("--max-num-seqs", "--max-running-requests")
SHARE_FLAGS = ("--gpu-memory-utilization", "--mem-fraction-static")
CONTEXT_FLAGS = ("--max-model-len", "--context-length", "--ctx-size")


def numbers_of(facts: Mapping[str, Value]) -> Facts:
    """Returns context, concurrency and share of the memory by their neutral names."""
    found: Facts = {}
    for name, flags in (("context", CONTEXT_FLAGS), ("concurrency", RUNNING_FLAGS), ("memory_share", SHARE_FLAGS)):
        numbers = [number for flag in flags for number in _numbers(facts.get(flag))]
        if numbers:
            found[name] = numbers[-1]
    return found


def _numbers(value: Value) -> list[float]:
    values = value if isinstance(value, tuple) else (value,)
    return [number for one in values if one is not None and (number := as_number(one)) is not None]


def _last(value: Value) -> Scalar | None:
    return value[-1] if isinstance(value, tuple) and value else None if isinstance(value, tuple) else value


def share_facts(facts: Mapping[str, Value]) -> Facts:
    """Returns whether the engine's share of the memory has room for the weights, where both are known."""
    share, weights = facts.get("memory_share"), facts.get("weights_share")
    if not isinstance(share, float) or not isinstance(weights, float):
        return {}
    return {"share_below_weights": share < weights}


def assumed_version(rules: Iterable[Rule], facts: Mapping[str, Value]) -> str | None:
    """Returns the version that a build without one is judged by, where a rule tells it."""
    if "version" in facts:
        return None
    found = preferred(rules, facts).get("version")
    return str(found[0]) if found else None


def setting_facts(settings: Iterable[Setting]) -> Facts:
    """Returns a plan's settings as the rules name them."""
    said: Facts = {setting.name: setting.value for setting in settings if setting.name.startswith(("--", "$"))}
    facts = flag_facts(said)
    return facts | numbers_of(facts)
