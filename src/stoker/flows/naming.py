"""Checks the names in a service's table that only higher rooms know: its filters, and the probes of its gate."""

from __future__ import annotations

from collections.abc import Callable

from stoker.errors import WrongUse
from stoker.gateway.chain import chain_of
from stoker.probes import check_probes
from stoker.records import Wish


def check_names(wish: Wish) -> None:
    """Raises WrongUse where a filter could not be made of what is said, or a probe is named that does not exist."""
    _check(wish, "filters", lambda: chain_of(wish.filters))
    _check(wish, "gate", lambda: check_probes(wish.gate or ()))


def _check(wish: Wish, key: str, check: Callable[[], object]) -> None:
    try:
        check()
    except WrongUse as problem:
        raise WrongUse(
            f"`service.{wish.name}.{key}`: {problem.what}", why=problem.why, next_step=problem.next_step
        ) from problem
