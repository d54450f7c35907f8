"""Whether a box has what it takes to be a part of a Ray cluster."""

from __future__ import annotations

import shutil

from stoker.errors import Refused
from stoker.plan.ground import Ground
from stoker.plan.spread.ray import program_of

OTHERWISE = "or leave `executor` out: vLLM's own launch needs no Ray"


def check_ray(ground: Ground) -> None:
    """Raises Refused where Ray is to start the engine's processes, and cannot be started here."""
    wish = ground.wish
    if wish.executor != "ray":
        return
    if ground.image is not None:
        raise Refused(
            f'{wish.name} has executor = "ray" and runs in an image',
            why="Ray's processes are started beside the engine's, as programs of this machine, and not inside a container",
            next_step=f"name `program` in [service.{wish.name}] in the place of `image`, {OTHERWISE}",
        )
    program = program_of(wish.program)
    if shutil.which(program) is None:
        raise Refused(
            f"there is no Ray for {wish.name} here: no program `{program}`",
            why="it starts the engine's workers by its own Python, so it has to lie in the engine's environment",
            next_step=f"`pip install ray` there, the same version on each box, {OTHERWISE}",
        )
