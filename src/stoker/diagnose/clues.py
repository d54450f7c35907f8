"""What a log tells of the launch that wrote it, by the names that rules use: engine, version, flags, model, GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from stoker.diagnose.heard import Start
from stoker.diagnose.scan import Hit
from stoker.engines import find
from stoker.plan.lint import QUANTISATION
from stoker.plan.situation import Facts, flag_facts, numbers_of
from stoker.rules.compare import Value

GPUS: dict[str, Facts] = {
    "GB10": {"sm": "12.1", "unified": True, "arch": "aarch64"},
    "GB200": {"sm": "10.0", "arch": "aarch64"},
    "B200": {"sm": "10.0", "unified": False},
    "H200": {"sm": "9.0", "unified": False},
    "H100": {"sm": "9.0", "unified": False},
    "A100": {"sm": "8.0", "unified": False},
    "L40": {"sm": "8.9", "unified": False},
    "L40S": {"sm": "8.9", "unified": False},
}
PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}  # as images call them, and as the kernel does
MODEL_FLAGS = ("model", "model_tag", "model_path")
VALUE = re.compile(r"(\w+)=('(?:[^'\\]|\\.)*'|[\w.+-]+)")


def engine_of(start: Start) -> str | None:
    """Returns the engine that spoke most in a start, or None where none did."""
    spoke = [(times, name) for name, times in start.spoke.items() if times]
    return max(spoke)[1] if spoke else None


def read_clues(start: Start) -> Facts:
    """Returns everything a start tells of itself."""
    facts: Facts = {}
    engine = engine_of(start)
    if engine is not None:
        facts["engine"] = engine
    flags = _flags(start.clues)
    facts |= flag_facts(flags) | numbers_of(flags) if flags else {}
    facts |= _hardware(start.clues) | _model(start.clues, flags)
    version = start.version or _group(start.clues.get("llm"), "version")
    if engine is not None and version is not None:
        facts["version"] = find(engine).release_of(version)
    return facts


def is_launch_told(facts: Mapping[str, Value]) -> bool:
    """Tells whether the flags of the launch are known, so that one that is not among them was not given."""
    return any(name.startswith("--") for name in facts)


def _flags(clues: Mapping[str, Hit]) -> Facts:
    """vLLM tells what was given, as a dictionary; SGLang tells all it has, as keywords."""
    if hit := clues.get("arguments"):
        return _named(_literal(hit.found[1]))
    if hit := clues.get("server_args"):
        return _named({name: _scalar(value) for name, value in VALUE.findall(hit.found[1])})
    return {}


def _literal(text: str) -> dict[str, object]:
    try:
        tree = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {name: value for name, value in tree.items() if isinstance(name, str)} if isinstance(tree, dict) else {}


def _scalar(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _named(values: Mapping[str, object]) -> Facts:
    said: Facts = {}
    for name, value in values.items():
        if isinstance(value, str | int | float | bool):
            said[f"--{name.replace('_', '-')}"] = value
        elif isinstance(value, dict):
            inner = {key: entry for key, entry in value.items() if isinstance(entry, str | int | float | bool)}
            said |= {f"--{name.replace('_', '-')}.{key}": entry for key, entry in inner.items()}
            said[f"--{name.replace('_', '-')}"] = str(value)
    return said


def _hardware(clues: Mapping[str, Hit]) -> Facts:
    facts: Facts = {}
    if hit := clues.get("arch"):
        facts["arch"] = hit.found[1]
    if hit := clues.get("sm"):
        facts["sm"] = hit.found["sm"] or "12.1"
    if hit := clues.get("gpu"):
        facts |= GPUS[hit.found[1]]
    if hit := clues.get("nccl"):
        facts["nccl_nodes"] = 2 if hit.found["between"] else int(hit.found["nodes"] or 1)
    return facts | _processors(clues)


def _processors(clues: Mapping[str, Hit]) -> Facts:
    """Docker and podman name the machine's processor and the image's, or say that the image has none for the machine."""
    facts: Facts = {}
    for name in ("manifest", "platforms"):
        if hit := clues.get(name):
            host, image = hit.found["host"], hit.found.groupdict().get("image", "another")
            facts |= {"arch": PROCESSORS.get(host, host), "image_arch": PROCESSORS.get(image, image)}
    return facts


def _model(clues: Mapping[str, Hit], flags: Facts) -> Facts:
    named = [str(flags[f"--{name.replace('_', '-')}"]) for name in MODEL_FLAGS if f"--{name.replace('_', '-')}" in flags]
    named += [model for model in (_group(clues.get("llm"), "model"), _first(clues.get("model"))) if model]
    facts: Facts = {}
    if named:
        folder = named[0].rstrip("/").rsplit("/", 1)[-1]
        facts["model"] = tuple(dict.fromkeys((named[0].lower(), folder.lower())))
        found = QUANTISATION.search(named[0])
        facts |= {"quantisation": found[1].lower()} if found else {}
    if architecture := _first(clues.get("architecture")):
        facts["architecture"] = architecture
    return facts


def _group(hit: Hit | None, name: str) -> str | None:
    return hit.found[name] if hit is not None else None


def _first(hit: Hit | None) -> str | None:
    return next((found for found in hit.found.groups() if found), None) if hit is not None else None
