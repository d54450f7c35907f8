"""Models and grounds that several tests plan for; shapes from published configurations, sizes from their repositories."""

from __future__ import annotations

from typing import Any

from stoker.engines import find, image_parts, version_in_tag
from stoker.facts.machine.boxes import read_box
from stoker.plan.ground import Ground
from stoker.plan.report import make_report
from stoker.records import CacheLayers, Machine, Model, NearCatalog, Report, Rule, Wish
from stoker.rules.load import load_rules

GB = 10**9
NIGHTLY = "lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a"
GB10, GB10_64, H200, PC = (read_box(name) for name in ("gb10", "gb10-64", "h200", "pc"))


def make_checkpoint(**changes: Any) -> Model:
    """Returns a folder of safetensors: by default Mistral Small 4 119B in NVFP4, 36 layers of compressed cache."""
    facts: dict[str, Any] = {
        "path": "/models/mistral-small-4-nvfp4", "name": "Mistral-Small-4-119B-2603-NVFP4",
        "architecture": "Mistral4ForCausalLM", "file_bytes": int(70.9 * GB), "parameters": 119 * GB, "quantisation": "nvfp4",
        "context_tokens": 1_048_576, "kv_bytes_per_token": 23_040, "vocabulary_hash": "v", "has_chat_template": True,
        "licence": "apache-2.0", "digest": "d" * 12, "format": "safetensors", "model_type": "mistral4",
        "repository": "mistralai/Mistral-Small-4-119B-2603-NVFP4", "cache": (CacheLayers("mla", 36, 11_520),), "layers": 36,
        "hidden_size": 4096, "vocabulary_size": 131_072, "experts": 128, "experts_per_token": 4, "has_vision": True,
        "template_features": ("tools",), "layouts": ("transformers",),
    }  # fmt: skip
    return Model(**{**facts, **changes})


MISTRAL = make_checkpoint()
EAGLE = make_checkpoint(
    path="/models/mistral-small-4-eagle", name="Mistral-Small-4-119B-2603-eagle", architecture="EagleMistralForCausalLM",
    file_bytes=int(0.8 * GB), parameters=GB // 2, quantisation="bf16",
    repository="mistralai/Mistral-Small-4-119B-2603-eagle",
    cache=(), kv_bytes_per_token=None, experts=None, experts_per_token=None, has_vision=False, model_type="eagle",
)  # fmt: skip
QWEN = make_checkpoint(
    path="/models/qwen3.6-27b-fp8", name="Qwen3.6-27B-FP8", architecture="Qwen3_5ForCausalLM", file_bytes=int(29.7 * GB),
    parameters=27 * GB, quantisation="fp8", repository="Qwen/Qwen3.6-27B-FP8", model_type="qwen3_5", layers=64,
    hidden_size=5120, experts=None, experts_per_token=None, has_vision=False, draft_layers=1, context_tokens=262_144,
    cache=(CacheLayers("full", 16, 32_768), CacheLayers("state", 48, state_bytes=150_000_000)), kv_bytes_per_token=65_536,
)  # fmt: skip


def make_ground(engine: str, model: Model = MISTRAL, draft: Model | None = None, **changes: Any) -> Ground:
    """Returns what a plan stands on; `changes` are of the ground, or of the wish."""
    of_ground = {name: changes.pop(name) for name in ("machine", "rules", "version", "near", "running") if name in changes}
    image = changes.get("image")
    machine: Machine = of_ground.get("machine", GB10)
    rules: tuple[Rule, ...] = of_ground.get("rules", load_rules(engine))
    version = of_ground.get("version") or (version_in_tag(image_parts(image)[1]) if image else None)
    wish = Wish(name="coder", model=model.path, engine=engine, **changes)
    near = of_ground.get("near", NearCatalog(None))
    running = of_ground.get("running", ())
    return Ground(wish, model, draft, machine, rules, find(engine).name, "asked for", image, version, near, running)


def report_of(engine: str, model: Model = MISTRAL, draft: Model | None = None, **changes: Any) -> Report:
    """Returns the report on such a ground, with an engine that knows every flag."""
    return make_report(make_ground(engine, model, draft, **changes))


def settings_of(report: Report) -> dict[str, object]:
    """Returns a plan's settings by name."""
    return {setting.name: setting.value for setting in report.plan.settings}
