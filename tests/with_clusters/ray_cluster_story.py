"""Asks a Ray cluster for what vLLM asks it for: one GPU on each of two boxes; prints the boxes that gave one."""

from __future__ import annotations

import json
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

LIMIT_S = 60.0
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
group = placement_group([{"GPU": 1}, {"GPU": 1}], strategy="STRICT_SPREAD")
ray.get(group.ready(), timeout=LIMIT_S)


def place() -> str:
    return str(ray.util.get_node_ip_address())


asked = [
    ray.remote(num_gpus=1, num_cpus=0)(place)
    .options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index))
    .remote()
    for index in range(2)
]
print(json.dumps(sorted(ray.get(asked, timeout=LIMIT_S))))
