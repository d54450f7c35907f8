"""What a key's models are compared with: the names that some service or alias has, running or not."""

from __future__ import annotations

from stoker.config import Paths, read_config
from stoker.errors import StokerError
from stoker.store.services import read_saved


def warn_of_models(paths: Paths, models: tuple[str, ...] | None) -> tuple[str, ...]:
    """Returns a warning where a key names models that nothing here is called by: a service may still get that name later."""
    known = _read_known(paths) if models else None
    unknown = [] if known is None else [name for name in models or () if name not in known]
    if known is None or not unknown:
        return ()
    names, there = _listed(unknown), _listed(sorted(known)) or "none yet"
    return (f"no service or alias is called {names}, so this key cannot ask that for now. Models: {there}",)


def _read_known(paths: Paths) -> frozenset[str] | None:
    try:
        config, saved = read_config(paths.config), read_saved(paths.database)
    except StokerError:  # with a file that cannot be read nothing is known, and nothing is said
        return None
    tables = {wish.served_name or name for name, wish in config.services.items()}
    return frozenset(tables | set(config.aliases) | {one.plan.model for one in saved})


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
