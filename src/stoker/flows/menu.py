"""What `stoker.toml` says for the gateway's door, as the file is now: read again when it was changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from stoker.config import Config, read_config
from stoker.door_tables import model_of
from stoker.errors import StokerError
from stoker.flows.naming import check_names
from stoker.records import DoorSettings, DoorView, QueueLimits, Wish

LOOK_S = 1.0
NO_DOOR = DoorSettings()
Stamp = tuple[int, int, int]
logger = logging.getLogger("stoker.daemon")


class Menu:
    """The services and aliases of `stoker.toml`, which `config` holds; nothing waits for a disk but `run` and `refresh`."""

    def __init__(self, file: Path, config: Config) -> None:
        self._file = file
        self._stamp: Stamp | None = None
        self.fault: str | None = None  # why the file as it is now cannot be used
        self._take(config)

    def _take(self, config: Config) -> None:
        self.config = config
        served = [(model_of(wish), name) for name, wish in config.services.items()]
        # What a request may start comes last, so that it stands for its model's name: config allows one of them only.
        served.sort(key=lambda pair: self.door(pair[1]).on_demand)
        self._by_model = {model: name for model, name in served if model is not None}

    async def run(self) -> None:
        """Looks at the file again and again until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(LOOK_S)

    async def refresh(self) -> None:
        """Reads the file if it was changed; one that cannot be used is told of once, and what it said before stands."""
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._take(await asyncio.to_thread(_read, self._file))
            self.fault = None
        except StokerError as problem:
            self.fault = problem.what
            logger.warning("what stoker.toml said before stands for the gateway: %s", str(problem).replace("\n  ", "; "))
        except Exception as problem:  # a fault here must not end the daemon, and with it all services
            self.fault = f"Stoker itself failed to read it ({type(problem).__name__}: {problem}); see daemon.log"
            logger.exception("what stoker.toml said before stands for the gateway")

    def wish(self, service: str) -> Wish | None:
        """Returns the wish of a service, None where the file has none of that name."""
        return self.config.services.get(service)

    def door(self, service: str) -> DoorSettings:
        """Returns what the door does with a service's requests."""
        return self.config.doors.get(service, NO_DOOR)

    def filters(self, service: str) -> tuple[str, ...]:
        """Returns the filters that a service's requests and replies go through."""
        wish = self.wish(service)
        return () if wish is None else wish.filters

    def limits(self, service: str) -> QueueLimits:
        """Returns how many requests for a service may run and wait: its own table's word, else that of `[gateway]`."""
        door, gateway = self.door(service), self.config.gateway
        return QueueLimits(
            gateway.running if door.running is None else door.running,
            gateway.waiting if door.waiting is None else door.waiting,
            gateway.wait_s if door.wait_s is None else door.wait_s,
            door.tokens_in_flight,
        )

    def remote_limits(self) -> QueueLimits:
        """Returns how many requests for another box's service may wait here: its own limits are that box's to keep."""
        return QueueLimits(None, self.config.gateway.waiting, self.config.gateway.wait_s)

    def views(self) -> tuple[DoorView, ...]:
        """Returns the services that come or go by themselves."""
        doors = self.config.doors.items()
        return tuple(DoorView(name, one.on_demand, one.idle_s) for name, one in doors if one.on_demand or one.idle_s)

    def idle_limits_s(self) -> dict[str, float]:
        """Returns after how long each service is stopped that has a time-out of its own."""
        return {name: door.idle_s for name, door in self.config.doors.items() if door.idle_s is not None}

    def on_demand(self) -> Iterator[tuple[Wish, str]]:
        """Yields the wishes that a request may start by the name of a model, and that name."""
        for model, name in self._by_model.items():
            if self.door(name).on_demand:
                yield self.config.services[name], model

    def started_by(self, model: str) -> str | None:
        """Returns the service that a request for a model may start."""
        name = self._by_model.get(model)
        return name if name is not None and self.door(name).on_demand else None

    @property
    def aliases(self) -> dict[str, str]:
        """Other names, each with the model or service that it stands for."""
        return self.config.aliases


def _read(file: Path) -> Config:
    config = read_config(file)
    for wish in config.services.values():
        check_names(wish)
    return config


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
