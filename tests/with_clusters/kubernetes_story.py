"""Holds manifests against Kubernetes' own schemas, strictly; a LeaderWorkerSet by its API, and its pods as pods."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.34"
GROUP = json.loads((Path(__file__).parent / "leaderworkerset.json").read_text())


def check(document: dict[str, Any]) -> None:
    if document["kind"] != "LeaderWorkerSet":
        kubernetes_validate.validate(document, VERSION, strict=True)
        return
    jsonschema.validate(document, GROUP)
    for role in ("leaderTemplate", "workerTemplate"):
        template = document["spec"]["leaderWorkerTemplate"][role]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", **template["metadata"]},
            "spec": template["spec"],
        }
        kubernetes_validate.validate(pod, VERSION, strict=True)


told: dict[str, list[list[str]]] = {}
for file in sys.argv[1:]:
    told[file] = []
    for document in yaml.safe_load_all(Path(file).read_text()):
        try:
            check(document)
            told[file].append([document["kind"], ""])
        except Exception as problem:  # noqa: BLE001 - whatever is wrong is told
            told[file].append([document["kind"], f"{type(problem).__name__}: {problem}"[:500]])
print(json.dumps(told))
