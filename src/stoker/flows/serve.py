"""The daemon: owns the state folder, runs the supervisor, and opens the gateway."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

import psutil

from stoker import __version__
from stoker.box import LocalBox, clock_s
from stoker.config import Config, Paths, read_config
from stoker.errors import Refused, StokerError
from stoker.facts.memory import read_memory
from stoker.facts.ports import read_listener
from stoker.flows.ownership import instance_of, own_state, read_or_make_key
from stoker.flows.planning import make_plan
from stoker.gateway.asgi import App
from stoker.gateway.door import Door, Entry
from stoker.gateway.metrics import GatewayMetrics
from stoker.probes.answers import Prober
from stoker.records import DaemonView, GatewayView, SavedService, ServiceView, State, StatusView, Wish
from stoker.store.services import ServiceStore
from stoker.supervise.hands import Tools
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor

RETRY_SOON_S, RETRY_LATER_S = 5, 60
RESTING = frozenset({State.STOPPED, State.FAILED, State.WEDGED})
logger = logging.getLogger("stoker.daemon")


class Control:
    """What the control API may do: the daemon's uses, by name."""

    def __init__(self, paths: Paths, store: ServiceStore, supervisor: Supervisor) -> None:
        self._paths = paths
        self._store = store
        self._supervisor = supervisor
        self._begun = clock_s()
        self.url = ""
        self.stop_asked = asyncio.Event()

    def status(self) -> StatusView:
        """Returns everything that `stoker status` shows."""
        me = psutil.Process()
        return StatusView(
            gateway=GatewayView(f"{self.url}/v1", str(self._paths.key_file)),
            daemon=DaemonView(True, me.pid, self._begun, __version__, me.memory_info().rss),
            services=self._supervisor.views(),
        )

    async def up(self, wish: Wish) -> ServiceView:
        """Plans a wish and asks for it to run; the state returned is the first that follows."""
        plan = make_plan(wish)
        self._check_names(plan.service, plan.model)
        owner = await self._supervisor.start(plan, "you asked for it")
        return owner.view()

    def _check_names(self, service: str, model: str) -> None:
        for name, owner in self._supervisor.owners.items():
            if name != service and owner.plan.model == model:
                raise Refused(
                    f"the model name `{model}` is taken by the service `{name}`",
                    why="a request names a model, and one name must mean one model",
                    next_step="give one of them another `served_name`",
                )

    async def down(self, name: str) -> ServiceView:
        """Asks for a service to stop; the state returned is the first that follows."""
        owner = self._supervisor.find(name)
        owner.ask_stop("you asked for it")
        await owner.await_handled()
        return owner.view()

    def forget(self, name: str) -> None:
        """Forgets a service that rests."""
        self._supervisor.forget(name)
        self._store.delete(name)

    async def wait(self, name: str, seen: State, limit_s: float) -> ServiceView:
        """Returns the service once it is in another state than the one seen, or as it is when the limit is over."""
        owner = self._supervisor.find(name)
        if owner.service.state is seen:
            await owner.await_change(limit_s)
        return owner.view()

    def tail(self, name: str, count: int) -> list[str]:
        """Returns the last lines that a service's engine printed."""
        return self._supervisor.find(name).tail(count)

    def log_file(self, name: str) -> Path:
        """Returns the file that a service's engine writes."""
        self._supervisor.find(name)
        return self._paths.engine_log(name)


class _Directory:
    """The supervisor's services as the gateway's door needs them."""

    def __init__(self, owners: dict[str, ServiceOwner]) -> None:
        self._owners = owners

    def entries(self) -> list[Entry]:
        return [_entry(owner) for owner in self._owners.values()]


def _entry(owner: ServiceOwner) -> Entry:
    plan, service = owner.plan, owner.service
    context = next((setting.value for setting in plan.settings if setting.name == "context"), None)
    return Entry(
        plan.service, plan.model, service.state, service.since, service.why,
        context if isinstance(context, int) else None, owner.endpoint,
        RETRY_LATER_S if service.state in RESTING else RETRY_SOON_S,
    )  # fmt: skip


def serve(paths: Paths, make_app: Callable[[Control], App], announce: Callable[[str], None]) -> None:
    """Runs the daemon until SIGTERM, SIGINT or the control API ends it."""
    import uvloop

    config = read_config(paths.config)
    with own_state(paths, __version__), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(paths, config, make_app, announce))


async def _run(paths: Paths, config: Config, make_app: Callable[[Control], App], announce: Callable[[str], None]) -> None:
    store = ServiceStore(paths.database)
    key, engine_key = read_or_make_key(paths.key_file), read_or_make_key(paths.engine_key_file)
    prober = Prober(engine_key)
    tools = Tools(
        paths=paths, limits=config.limits, instance=instance_of(paths), engine_key=engine_key,
        read_memory=lambda: read_memory(LocalBox()), is_healthy=prober.is_healthy, prove=prober.prove,
        in_flight=lambda service: door.in_flight(service),
    )  # fmt: skip
    supervisor = Supervisor(tools, store.read_all(), _saver(store))
    control = Control(paths, store, supervisor)
    metrics = GatewayMetrics(supervisor.views, __version__)
    door = Door(config.gateway, _Directory(supervisor.owners), make_app(control), metrics, key, engine_key)
    try:
        await _live(paths, config, supervisor, control, door, announce)
    finally:
        await prober.close()
        store.close()


async def _live(
    paths: Paths, config: Config, supervisor: Supervisor, control: Control, door: Door, announce: Callable[[str], None]
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, control.stop_asked.set)
    server = await _bind(config, door)
    async with asyncio.TaskGroup() as tasks:
        host, port = server.sockets[0].getsockname()[:2]
        control.url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        _write_whole(paths.address_file, control.url)
        running = tasks.create_task(supervisor.run())
        await door.open(server, tasks)
        announce(control.url)
        await control.stop_asked.wait()
        for number in (signal.SIGTERM, signal.SIGINT):  # the second one forces
            loop.remove_signal_handler(number)
        server.close()
        door.close_idle()
        await supervisor.pause("the daemon was told to stop; it comes back with the next one")
        running.cancel()
        door.cut_all()


async def _bind(config: Config, door: Door) -> asyncio.Server:
    gateway = config.gateway
    try:
        return await door.bind()
    except OSError as problem:
        who = read_listener(gateway.port) if gateway.port else None
        raise Refused(
            f"the gateway cannot listen on {gateway.host}:{gateway.port}",
            why=f"the port is taken by {who}" if who else problem.strerror or str(problem),
            next_step="end that program, or set gateway.port in stoker.toml",
        ) from problem


def _write_whole(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text + "\n")
    fresh.rename(file)


def _saver(store: ServiceStore) -> Callable[[SavedService], str | None]:
    """Returns a writer that tells of a fault instead of raising it: a full disk must not end what runs."""

    def save(saved: SavedService) -> str | None:
        try:
            store.write(saved)
        except StokerError as problem:
            logger.warning("service=%s not saved: %s", saved.plan.service, problem.why)
            return f"its state cannot be saved ({problem.why}); it runs on, but a new daemon would not know of it"
        return None

    return save
