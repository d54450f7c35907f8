"""A plan as a Ray Serve LLM application: the file that `serve deploy` takes, its reasons as comments. Pure.

Source of its keys: https://docs.ray.io/en/latest/serve/llm/ and `ServeDeploySchema` of Ray 2.60.
"""

from __future__ import annotations

import json
from typing import Any

from stoker.errors import Refused
from stoker.launch.commented import Reasons, Word
from stoker.launch.exported import Exported, sentence, told, variables
from stoker.launch.names import check_no_secret
from stoker.records import Setting

PROGRAM = "ray.serve.llm:build_openai_app"
OURS = ("--distributed-executor-backend",)


def render_ray_serve(exported: Exported) -> str:
    """Returns the text of a Serve configuration; raises Refused for an engine that Ray Serve LLM does not run."""
    plan = exported.plan
    if plan.engine != "vllm":
        raise Refused(
            f"{plan.service} is planned for {plan.engine}, and Ray Serve LLM runs vLLM",
            next_step='set engine = "vllm", or `stoker export kubernetes`',
        )
    spoken = [(one.name.removeprefix("$"), str(one.value)) for one in variables(exported)]
    check_no_secret(plan.service, spoken, [f"{one.name}={one.value}" for one in told(exported)])
    reasons = Reasons()
    application = {
        "name": exported.name, "route_prefix": "/", "import_path": Word(PROGRAM),
        "args": {"llm_configs": [_llm(exported, reasons)]},
    }  # fmt: skip
    tree = {**reasons.key("Reached on the head alone; put a proxy with TLS and keys before it."),
            "http_options": {"host": Word("127.0.0.1"), "port": 8000}, "applications": [application]}  # fmt: skip
    head = (f"Written by Stoker: {plan.model} ({plan.plan_id}) for Ray Serve LLM; `serve deploy FILE`.",
            sentence(exported.because) if exported.because else "The plan of one box.")  # fmt: skip
    return reasons.write([tree], head)


def _llm(exported: Exported, reasons: Reasons) -> dict[str, Any]:
    plan, boxes = exported.plan, exported.size
    found: dict[str, Any] = {
        "model_loading_config": {
            "model_id": Word(plan.model),
            **reasons.key("Has to lie at this path on every box, as it does where it was planned."),
            "model_source": Word(plan.model_path),
        },
        **reasons.key("Ray knows no name for a GB10, so that only the number of GPUs is asked for: one a box."),
        "placement_group_config": {
            "bundles": [{"CPU": 1, "GPU": 1} for _ in range(boxes)],
            "strategy": Word("STRICT_SPREAD" if boxes > 1 else "PACK"),
        },
        "deployment_config": {"num_replicas": exported.copies},
        "engine_kwargs": _arguments(exported, reasons),
    }
    environment = _environment(exported, reasons)
    return found | ({"runtime_env": {"env_vars": environment}} if environment else {})


def _arguments(exported: Exported, reasons: Reasons) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in told(exported):
        if one.name in OURS:
            continue
        name, value = _argument(one)
        place, entry = found, name
        if "." in name:
            entry, _, inner = name.partition(".")
            place, entry = found.setdefault(entry, {}), inner
        place |= {**reasons.key(one.because), entry: value}
    if exported.size > 1:
        found |= {**reasons.key("Ray itself starts the ranks."), "distributed_executor_backend": Word("ray")}
    return found


def _argument(one: Setting) -> tuple[str, Any]:
    """A flag as a keyword: a switch is true, `--no-x` makes x false, and JSON becomes what it says."""
    flag, value = one.name.removeprefix("--"), one.value
    if value is True and flag.startswith("no-"):
        return flag.removeprefix("no-").replace("-", "_"), False
    head, dot, rest = flag.partition(".")
    return head.replace("-", "_") + dot + rest, _value(value)


def _value(value: object) -> Any:
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except ValueError:
            return Word(value)
    return Word(value)


def _environment(exported: Exported, reasons: Reasons) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in variables(exported):
        found |= {**reasons.key(one.because), one.name[1:]: Word(str(one.value))}
    return found
