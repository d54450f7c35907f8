"""A plan as a plain process: the engine's words plus what every engine of ours gets in its environment."""

from __future__ import annotations

import re

import msgspec

from stoker.launch.command import render_engine
from stoker.records import LaunchSpec, Plan

MARKER_VARIABLE = "STOKER_ENGINE"
KEPT_VARIABLES = frozenset({"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV"})
SECRET = re.compile("TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTH")
KEPT_PREFIXES = ("CUDA_", "NVIDIA_", "GGML_", "HF_", "XDG_", "OMP_")


def render_launch(plan: Plan, port: int, marker: str, inherited: dict[str, str]) -> LaunchSpec:
    """Returns the launch spec of a plan; `marker` lets all processes of this launch be found again."""
    spec = render_engine(plan, port)
    kept = {name: value for name, value in inherited.items() if _is_kept(name)}
    own = {"PYTHONUNBUFFERED": "1", MARKER_VARIABLE: marker, **dict(spec.environment)}
    return msgspec.structs.replace(spec, environment=tuple(sorted({**kept, **own}.items())))


def _is_kept(name: str) -> bool:
    # An engine gets what it needs, not every secret that lies in the environment of the shell that started the daemon;
    # some of them have an engine's prefix: HF_TOKEN, NVIDIA_API_KEY. No LLAMA_ARG_*: it would go round the plan.
    return name in KEPT_VARIABLES or (name.startswith(KEPT_PREFIXES) and not SECRET.search(name))
