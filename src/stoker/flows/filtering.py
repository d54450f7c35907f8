"""Checks the filters that a service has in `stoker.toml`."""

from __future__ import annotations

from stoker.errors import WrongUse
from stoker.gateway.chain import chain_of
from stoker.records import Wish


def check_filters(wish: Wish) -> None:
    """Raises WrongUse where the gateway could not make filters of what is said."""
    try:
        chain_of(wish.filters)
    except WrongUse as problem:
        raise WrongUse(
            f"`service.{wish.name}.filters`: {problem.what}", why=problem.why, next_step=problem.next_step
        ) from problem
