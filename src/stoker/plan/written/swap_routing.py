"""Where a llama-swap file says which models may run together: the old place, the new one, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stoker.plan.written.table import Table


def routing_faults(top: Table) -> list[str]:
    """Returns a sentence for each thing in groups, matrix and profiles that llama-swap refuses or no longer means."""
    return [*_places(top), *_members(top), *_profiles(top)]


def _places(top: Table) -> Iterator[str]:
    old = [key for key in ("groups", "matrix") if top.values.get(key)]
    if old and _router(top).values:
        yield f"both `routing.router` and the old `{old[0]}` are there: llama-swap refuses the file"
    elif len(old) > 1:
        yield "both `groups` and `matrix` are there: llama-swap refuses the file"
    elif old:
        yield f"`{old[0]}` at the top is the old place; it belongs under `routing.router.settings`"


def _members(top: Table) -> Iterator[str]:
    groups = (top if "groups" in top else _router(top).table("settings")).table("groups")
    known = top.table("models").values
    members = [member for key in groups.values for member in groups.table(key).texts("members")]
    yield from (
        f"`{name}` is in more than one group: llama-swap refuses the file" for name, n in Counter(members).items() if n > 1
    )
    strangers = [name for name in dict.fromkeys(members) if name not in known]
    if strangers:
        yield f"the groups name models that the file does not have: {', '.join(strangers)}"
    if groups.values:
        yield "which models run together (`groups`) is llama-swap's own matter and was not read"


def _profiles(top: Table) -> Iterator[str]:
    lists = [key for key, value in top.table("profiles").values.items() if isinstance(value, list)]
    if lists:
        yield f"`profiles.{lists[0]}` is a list of models, which llama-swap refuses by now"


def _router(top: Table) -> Table:
    return top.table("routing").table("router")
