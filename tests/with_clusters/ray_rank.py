"""What vLLM does over Ray, without vLLM, whose build for the processor knows no device that Ray could give it.

It joins the cluster that it is told of, asks for a GPU on each box, keeps a worker there as vLLM does, says what those were
given, and answers.
"""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from fake_engine import Script
from fake_rank import serve

LIMIT_S = 60.0
PER_BOX = ("VLLM_HOST_IP", "NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES")


def main(script_file: str, words: list[str]) -> None:
    """Serves once there is a worker with a GPU on each box."""

    class Worker:  # here, so that Ray hands it on by value
        def tell(self) -> dict[str, str | None]:
            return {"address": ray.util.get_node_ip_address(), **{name: os.environ.get(name) for name in PER_BOX}}

    options = dict(pairwise(words))
    boxes = int(options["--tensor-parallel-size"])
    ray.init(log_to_driver=False, logging_level="ERROR")
    group = placement_group([{"GPU": 1}] * boxes, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=LIMIT_S)
    workers = [
        ray.remote(num_gpus=1, num_cpus=0)(Worker)
        .options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index))
        .remote()
        for index in range(boxes)
    ]
    told = ray.get([worker.tell.remote() for worker in workers], timeout=LIMIT_S)
    store_bytes = {node["Resources"]["object_store_memory"] for node in ray.nodes()}
    print("workers:", json.dumps(sorted(told, key=str)), "store:", sorted(store_bytes), flush=True)
    serve(Script(**json.loads(Path(script_file).read_text())), options)
