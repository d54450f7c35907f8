"""What `stoker export` writes, by Kubernetes' schemas and Ray's models, in the environment that tools/make-clients made."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

PYTHON = os.environ.get("STOKER_CLUSTERS", "")
HERE = Path(__file__).parent
GOLDEN = HERE.parent / "launch" / "golden_exports"  # tests/launch/test_exports.py holds that they are what is written
LIMIT_S = 240
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the clusters of `make test-clients`")


def play(story: str, *files: Path) -> Any:
    words = [PYTHON, str(HERE / story), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_manifests_are_what_kubernetes_takes() -> None:
    files = sorted(GOLDEN.glob("kubernetes-*.yaml"))
    told = play("kubernetes_story.py", *files)
    assert {Path(file).name: [kind for kind, _ in found] for file, found in told.items()} == {
        "kubernetes-copies.yaml": ["Deployment", "Service"],
        "kubernetes-one.yaml": ["Deployment", "Service"],
        "kubernetes-sglang-pair.yaml": ["LeaderWorkerSet", "Service"],
        "kubernetes-vllm-pair.yaml": ["LeaderWorkerSet", "Service"],
    }
    assert [problem for found in told.values() for _, problem in found if problem] == []


def test_a_mistyped_key_is_found_by_the_same_schemas(tmp_path: Path) -> None:
    bent = []
    for name, key in (("kubernetes-one.yaml", "replicas:"), ("kubernetes-vllm-pair.yaml", "readinessProbe:")):
        file = tmp_path / name
        file.write_text((GOLDEN / name).read_text().replace(key, f"x{key}"))
        bent.append(file)
    told = play("kubernetes_story.py", *bent)
    assert all(found[0][1] for found in told.values())


def test_the_applications_are_what_ray_serve_takes() -> None:
    files = sorted(GOLDEN.glob("ray-serve-*.yaml"))
    told = {Path(file).name: found for file, found in play("ray_story.py", *files).items()}
    right = {"application": "ray.serve.llm:build_openai_app", "models": ["coder"], "problem": ""}
    assert told == {
        "ray-serve-copies.yaml": {**right, "bundles": [1]},
        "ray-serve-one.yaml": {**right, "bundles": [1]},
        "ray-serve-pair.yaml": {**right, "bundles": [2]},
    }


def test_a_mistyped_key_is_found_by_rays_models(tmp_path: Path) -> None:
    file = tmp_path / "bent.yaml"
    file.write_text((GOLDEN / "ray-serve-pair.yaml").read_text().replace("placement_group_config:", "placement_group:"))
    assert play("ray_story.py", file)[str(file)]["problem"]
