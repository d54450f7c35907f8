"""Understands the words of one command: which engine it starts, in which container, with which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stoker.plan.written.containers import find_container
from stoker.plan.written.flags import flags_of, spans_of
from stoker.plan.written.inside import MOST_DEPTH, find_engine, inside_shell, text_place
from stoker.plan.written.prefixes import Stripped, strip_prefixes
from stoker.plan.written.restarts import find_restart
from stoker.plan.written.runners import HandedOn, handed_on
from stoker.records import Recipe, RecipeKind

__all__ = ["flags_of", "recipe_of", "spans_of"]


def recipe_of(
    words: Sequence[str],
    *,
    kind: RecipeKind = "command",
    source: str = "",
    line: int = 0,
    name: str | None = None,
    environment: Mapping[str, str] | None = None,
    lost_environment: Mapping[str, str] | None = None,
) -> Recipe | None:
    """Returns the launch that a command is, or None where it neither starts an engine or a container nor restarts one.

    `environment` is what the command is started with. `program` are all words before the engine's own, `docker run`
    among them; a container's options are in `container`, so that `program`, options, image and `words` make the command.
    A container without a known engine has None as `engine`, and so has `docker restart`. `kind` command becomes docker
    where a container is started.
    """
    found = _find(tuple(words), dict(environment or {}), 0)
    if found is None:
        return None
    return msgspec.structs.replace(
        found,
        kind=found.kind if kind == "command" else kind,
        source=source,
        line=line,
        name=name or found.name,
        lost_environment={**(lost_environment or {}), **found.lost_environment},
        unknown=tuple(dict.fromkeys(found.unknown)),
    )


def _find(words: Sequence[str], environment: Mapping[str, str], depth: int) -> Recipe | None:
    stripped = strip_prefixes(words, environment)
    if container := find_container(stripped):
        return container
    if restart := find_restart(stripped):
        return restart
    if depth <= MOST_DEPTH and (handed := handed_on(stripped.words)):
        return _handed_on(handed, stripped, depth)
    if text_place(stripped.words) is not None and depth <= MOST_DEPTH:
        return inside_shell(stripped, _find, depth)
    return find_engine(words, environment, depth)


def _handed_on(handed: HandedOn, stripped: Stripped, depth: int) -> Recipe | None:
    """Returns the launch that is started through another program; no variable of ours crosses over to another machine."""
    ours = stripped.environment
    found = _find(handed.words, {} if handed.is_remote else ours, depth + 1)
    if found is None:
        return None
    where = "on another machine, which is not the one looked at here" if handed.is_remote else "there"
    said = f"`{handed.through}` starts it, {where}: what is read and mended is the command that it is handed"
    lost = {**stripped.lost, **(ours if handed.is_remote else {}), **found.lost_environment}
    return msgspec.structs.replace(found, lost_environment=lost, unknown=(said, *found.unknown))
