"""Keys and usage while the daemon runs: what is changed holds at once, on disk and at the door."""

from __future__ import annotations

import asyncio

from stoker.box import clock_s
from stoker.config import Paths
from stoker.errors import StokerError, WrongUse
from stoker.flows.key_records import make_key, make_secret, read_views, view_key
from stoker.flows.known_models import warn_of_models
from stoker.gateway.keyring import Keyring
from stoker.gateway.meter import Meter
from stoker.records import KeyView, KeyWish, NewKey, RevokedKey, UsageBy, UsageView
from stoker.store.keys import add_key, read_keys, revoke_key
from stoker.store.recorder import Recorder
from stoker.store.usage import read_last_used, read_usage


class KeyDesk:
    """The daemon's uses around keys. Files are read and written in other threads."""

    def __init__(self, paths: Paths, keyring: Keyring, meter: Meter, recorder: Recorder) -> None:
        self._paths = paths
        self._keyring = keyring
        self._meter = meter
        self._recorder = recorder
        self._turn = asyncio.Lock()  # what was read before another change must not be loaded after it
        self._unsaved: dict[str, float] = {}
        keyring.load(read_keys(paths.database))

    async def add(self, wish: KeyWish) -> NewKey:
        """Makes a key; raises WrongUse, Refused or StokerError."""
        secret, now = make_secret(), clock_s()
        key = make_key(wish, secret, now)
        async with self._turn:
            await asyncio.to_thread(add_key, self._paths.database, key)
            await self._load()
        warnings = await asyncio.to_thread(warn_of_models, self._paths, key.models)
        return NewKey(secret, view_key(key, None, now), warnings)

    async def revoke(self, name: str) -> RevokedKey:
        """Ends a key and what runs under it, before the disk is asked: a full one must not keep the door open."""
        now = clock_s()
        self._keyring.revoke(name, now)
        cut = self._meter.cut(name) if name in self._keyring.names() else 0
        async with self._turn:
            await self._save_revocation(name, now)
            await self._load()
        return RevokedKey(next(view for view in await self.list() if view.name == name), cut)

    async def _load(self) -> None:
        self._keyring.load(await asyncio.to_thread(read_keys, self._paths.database))
        for name, at in self._unsaved.items():
            self._keyring.revoke(name, at)

    async def _save_revocation(self, name: str, at: float) -> None:
        try:
            await asyncio.to_thread(revoke_key, self._paths.database, name, at)
        except WrongUse:  # there is no such key
            raise
        except StokerError as problem:
            self._unsaved[name] = at
            raise StokerError(
                f"the key `{name}` is refused from now on, but that is not saved: a next daemon would let it in",
                why=problem.why,
                next_step=f"{problem.next_step}, and say it again",
            ) from problem
        self._unsaved.pop(name, None)

    async def list(self) -> tuple[KeyView, ...]:
        """Returns all keys by name."""
        return await asyncio.to_thread(self._read_views)

    def _read_views(self) -> tuple[KeyView, ...]:
        self._recorder.flush()
        return read_views(self._paths.database, read_last_used(self._paths.usage_database), clock_s())

    async def usage(self, by: UsageBy, since: float | None) -> UsageView:
        """Returns usage, the last requests included."""
        return await asyncio.to_thread(self._read_usage, by, since)

    def _read_usage(self, by: UsageBy, since: float | None) -> UsageView:
        self._recorder.flush()
        lines = read_usage(self._paths.usage_database, by, since)
        return UsageView(by, since, lines, self._recorder.unwritten)
