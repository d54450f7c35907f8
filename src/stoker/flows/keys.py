"""Keys and usage from the command line: through the daemon where one runs, else in the state folder."""

from __future__ import annotations

from stoker import __version__
from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.client import Daemon, read_daemon
from stoker.flows.key_records import make_key, make_secret, read_views, view_key
from stoker.flows.known_models import warn_of_models
from stoker.flows.ownership import own_state, read_owner
from stoker.records import KeyView, KeyWish, NewKey, RevokedKey, UsageBy, UsageView
from stoker.store.keys import add_key, revoke_key
from stoker.store.usage import read_last_used, read_usage


def add(paths: Paths, wish: KeyWish) -> NewKey:
    """Makes a key, and returns it this once."""
    if daemon := _daemon(paths):
        return daemon.add_key(wish)
    secret, now = make_secret(), clock_s()
    key = make_key(wish, secret, now)
    with own_state(paths, __version__):  # a daemon that starts just now would not know of it
        add_key(paths.database, key)
    return NewKey(secret, view_key(key, None, now), warn_of_models(paths, key.models))


def list_keys(paths: Paths) -> tuple[KeyView, ...]:
    """Returns all keys by name."""
    if daemon := _daemon(paths):
        return daemon.keys()
    return read_views(paths.database, read_last_used(paths.usage_database), clock_s())


def revoke(paths: Paths, name: str) -> RevokedKey:
    """Ends a key at once; raises WrongUse where there is none of that name."""
    if daemon := _daemon(paths):
        return daemon.revoke_key(name)
    with own_state(paths, __version__):
        revoke_key(paths.database, name, clock_s())
    return RevokedKey(next(view for view in list_keys(paths) if view.name == name), 0)


def usage(paths: Paths, by: UsageBy, since_s: float | None) -> UsageView:
    """Returns who used what in the last `since_s` seconds, or in all the time that is kept."""
    since = None if since_s is None else clock_s() - since_s
    if daemon := _daemon(paths):
        return daemon.usage(by, since)
    return UsageView(by, since, read_usage(paths.usage_database, by, since))


def _daemon(paths: Paths) -> Daemon | None:
    daemon = read_daemon(paths)
    if daemon is None and (owner := read_owner(paths)) is not None:
        raise StokerError(
            "the daemon does not answer yet",
            why=f"pid {owner.pid} holds the state folder and has no address",
            next_step="try again in a moment; `stoker status` shows it",
        )
    return daemon
