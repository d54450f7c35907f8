"""Follows which launches of a script still run when it starts the next one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.plan.written.docker_calls import find_call
from stoker.plan.written.prefixes import program_name, strip_prefixes
from stoker.plan.written.runners import handed_on
from stoker.plan.written.shell import Command
from stoker.records import Recipe

# What ends programs, or waits until they end; whom it means is not looked up, so it counts for all.
ENDING = frozenset({"kill", "pkill", "killall", "wait", "fg", "fuser"})
PROBE = "-0"  # `kill -0 PID` only asks whether it lives
ENDING_CALLS = frozenset({"stop", "kill", "rm", "down", "pause"})
DETACHING = frozenset({"tmux", "screen"})


class Running:
    """The engines that a script has started in the background so far, on the machine it runs on itself.

    Only what certainly runs is counted: neither the branches of an `if` nor functions, which may be meant one at a time.
    """

    def __init__(self) -> None:
        self.recipes: list[Recipe] = []

    def start(self, command: Command, recipe: Recipe) -> Recipe:
        """Returns the launch with those that run beside it, and remembers it where the script goes on meanwhile."""
        words = strip_prefixes(command.words, {}).words
        handed = handed_on(words)
        is_here = command.is_certain and not (handed and handed.is_remote)
        if recipe.engine is None or not recipe.words or not is_here:
            return recipe
        self.recipes = [one for one in self.recipes if recipe.name is None or one.name != recipe.name]
        beside = tuple(self.recipes)
        is_left = command.is_background or "detach" in recipe.container or bool(handed and handed.through in DETACHING)
        self.recipes += [recipe] if is_left else []
        return msgspec.structs.replace(recipe, beside=beside)

    def stop(self, command: Command) -> None:
        """Forgets what a command ends."""
        words = strip_prefixes(command.words, {}).words
        if words and program_name(words[0]) in ENDING and PROBE not in words:
            self.recipes = []
        elif (call := find_call(words)) and call.verb in ENDING_CALLS:
            self.recipes = _left_by(call.names(), self.recipes) if not call.is_compose else []


def _left_by(names: Sequence[str], recipes: Sequence[Recipe]) -> list[Recipe]:
    """Returns what runs on after `docker stop NAMES`; a name that is not known may be anybody's."""
    if any("$" in name or "`" in name for name in names):
        return []
    return [one for one in recipes if one.name is not None and one.name not in names]
