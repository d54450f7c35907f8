"""Which of several replicas answers: never one of another model or revision, and of one plan the one with least to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from stoker.gateway.directory import Entry, NoReplica
from stoker.gateway.exchange import Headers
from stoker.records.boxes import Replica

Load = Callable[[Entry], int]


class Asked(NamedTuple):
    """What a request's headers say of where it shall go; None: anywhere."""

    box: str | None = None
    revision: str | None = None
    affinity: bytes | None = None


ANYWHERE = Asked()


def read_asked(headers: Headers | None) -> Asked:
    """Reads `x-stoker-box`, `x-stoker-revision` and `x-stoker-affinity`."""
    said = {name: value for name, value in headers or () if name.startswith(b"x-stoker-")}
    if not said:
        return ANYWHERE
    box, revision = said.get(b"x-stoker-box"), said.get(b"x-stoker-revision")
    return Asked(
        None if box is None else box.decode("latin-1"), None if revision is None else revision.decode("latin-1"),
        said.get(b"x-stoker-affinity"),
    )  # fmt: skip


def choose(replicas: Sequence[Entry], asked: Asked, load: Load) -> Entry:
    """Returns who answers for the model that all of these serve, this box's own first in the list.

    One that is not READY is returned where none is, so that its state is told. Raises NoReplica where the headers name
    what none has, or where they leave open which of two revisions is meant.
    """
    model = replicas[0].model
    named = [one for one in replicas if asked.box in (None, one.box) and asked.revision in (None, one.revision)]
    if not named:
        where = ", ".join(sorted({f"{one.box} ({one.revision or 'no revision yet'})" for one in replicas}))
        raise NoReplica(404, "no_such_replica", f"No box serves `{model}` as the headers ask. It is served by {where}.")
    ready = [one for one in named if one.endpoint is not None]
    if not ready:
        return next((one for one in named if not one.away), named[0])
    revisions = {one.revision for one in ready}
    if len(revisions) > 1:
        where = ", ".join(sorted(f"{one.box} ({one.revision})" for one in ready))
        raise NoReplica(
            409, "revisions_differ",
            f"`{model}` is another revision on another box: {where}. Name one by x-stoker-revision or x-stoker-box.",
        )  # fmt: skip
    alike = _of_one_plan(ready)
    if asked.affinity is not None:
        key = asked.affinity
        # The highest of these digests stays the highest when another box comes or goes, so few keys move.
        return max(alike, key=lambda one: blake2b(key + b"@" + one.service.encode(), digest_size=8).digest())
    return min(alike, key=load)


def _of_one_plan(ready: Sequence[Entry]) -> list[Entry]:
    """Returns those of the plan that most replicas have; among equals, this box's own, which come first."""
    counts = Counter(one.plan_id for one in ready)
    plan_id = max(counts, key=lambda one: counts[one])
    return [one for one in ready if one.plan_id == plan_id]


def as_replica(entry: Entry) -> Replica:
    """Returns where a model is served, as the list of models tells it."""
    service = entry.service.partition("@")[0]
    return Replica(entry.box, service, "AWAY" if entry.away else entry.state, entry.revision, entry.plan_id)
