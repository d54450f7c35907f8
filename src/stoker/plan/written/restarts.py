"""Reads `docker restart NAME`, which starts a container again at once: nothing of its launch is in it."""

from __future__ import annotations

from stoker.plan.written.docker_calls import find_call
from stoker.plan.written.prefixes import Stripped
from stoker.records import Recipe

RESTART = "restart"


def find_restart(stripped: Stripped) -> Recipe | None:
    """Returns a recipe of `docker restart` and its kin; None for other words."""
    call = find_call(stripped.words)
    if call is None or call.verb != RESTART:
        return None
    names = call.names()
    said = "what the container runs is not in the command"
    return Recipe(
        kind="docker",
        name=names[0] if names else None,
        program=(*stripped.prefix, *stripped.words),
        unknown=(said,),
    )


def is_restart(recipe: Recipe) -> bool:
    """Tells whether a recipe is no launch of its own, but `docker restart` of one."""
    return recipe.engine is None and recipe.image is None and RESTART in recipe.program and not recipe.words
