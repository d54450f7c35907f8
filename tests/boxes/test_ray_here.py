"""Whether a box may be a part of a Ray cluster: Ray beside the engine, as programs, or a reason and a way out."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.errors import Refused
from stoker.flows.planning import read_ground
from stoker.flows.ranks.ray import check_ray
from stoker.records import Wish
from support import fails

MODEL = Path(__file__).parents[2] / "models" / "demo" / "hf"
OVER_RAY = Wish("duo", str(MODEL), "vllm", version="0.26.0", boxes=("a", "b"), executor="ray")


def check(**changes: object) -> None:
    check_ray(read_ground(msgspec.structs.replace(OVER_RAY, **changes)))


def test_an_image_is_refused_since_ray_is_started_as_a_program() -> None:
    with fails(Refused, "runs in an image", "not inside a container", "leave `executor` out"):
        check(image="vllm/vllm-openai:v0.26.0")


def test_an_engine_without_ray_beside_it_is_refused(tmp_path: Path) -> None:
    program = (str(tmp_path / "bin" / "vllm"), "serve")
    with fails(Refused, f"no program `{tmp_path}/bin/ray`", "pip install ray"):
        check(program=program)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ray").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "ray").chmod(0o755)
    check(program=program)


def test_without_ray_asked_for_nothing_is_looked_for() -> None:
    check(executor="mp", program=("/nowhere/vllm", "serve"))
