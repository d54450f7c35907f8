"""Reads Serve configurations by Ray's own models: the deploy schema, and the configuration of each language model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from ray.llm._internal.serve.core.configs.llm_config import LLMConfig
from ray.serve.schema import ServeDeploySchema

told: dict[str, object] = {}
for file in sys.argv[1:]:
    tree = yaml.safe_load(Path(file).read_text())
    try:
        serve = ServeDeploySchema.model_validate(tree)
        models = [LLMConfig.model_validate(one) for one in tree["applications"][0]["args"]["llm_configs"]]
        told[file] = {
            "application": serve.applications[0].import_path, "models": [one.model_id for one in models],
            "bundles": [len(one.placement_group_config["bundles"]) for one in models], "problem": "",
        }  # fmt: skip
    except Exception as problem:  # noqa: BLE001 - whatever is wrong is told
        told[file] = {"problem": f"{type(problem).__name__}: {problem}"[:500]}
print(json.dumps(told))
