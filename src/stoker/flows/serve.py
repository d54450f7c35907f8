"""The daemon: owns the state folder, runs the supervisor, and opens the gateway."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from stoker import __version__
from stoker.box import LocalBox
from stoker.config import Config, Paths, read_config
from stoker.errors import Refused, StokerError
from stoker.facts.machine.card import CardReader
from stoker.facts.machine.memory import read_memory
from stoker.facts.machine.nvidia import read_nvidia
from stoker.facts.machine.ports import read_listener
from stoker.flows.acting import Acts, check_acts
from stoker.flows.board import Board
from stoker.flows.boxes.desk import BoxDesk
from stoker.flows.boxes.directory import FleetDirectory
from stoker.flows.boxes.fleet import Fleet
from stoker.flows.boxes.listening import Boxes, name_of
from stoker.flows.canaries import Canaries
from stoker.flows.control import Control
from stoker.flows.directory import Directory
from stoker.flows.exporting import Exporter
from stoker.flows.exposure import check_exposure
from stoker.flows.failing import tell_failure
from stoker.flows.gating import Gatekeeper
from stoker.flows.history import History
from stoker.flows.identity import IdentityCheck
from stoker.flows.idle import Idle
from stoker.flows.key_desk import KeyDesk
from stoker.flows.making_way import MakingWay
from stoker.flows.menu import Menu
from stoker.flows.naming import check_names
from stoker.flows.notices import Notices
from stoker.flows.notify import tell_ready
from stoker.flows.on_demand import OnDemand
from stoker.flows.ownership import instance_of, own_state, read_or_make_key
from stoker.flows.pace import Paces
from stoker.flows.ranks.calls import LinkedCrew
from stoker.flows.ranks.desk import RankDesk
from stoker.flows.sampling import Sampler
from stoker.flows.session_file import read_sessions, write_sessions
from stoker.flows.watching import Watching
from stoker.gateway.asgi import App
from stoker.gateway.door import Door, Keys
from stoker.gateway.hosts import is_loopback, reachable
from stoker.gateway.keyring import Keyring
from stoker.gateway.link_ring import LinkRing
from stoker.gateway.meter import Meter
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.serving import Serving
from stoker.gateway.sessions import Sessions
from stoker.probes.kit.prover import Prober
from stoker.records import SavedService, SavedSwitch, Start, UsageRecord
from stoker.records.first_use import prepare_records
from stoker.store.audit import write_audit
from stoker.store.recorder import Recorder
from stoker.store.services import ServiceStore
from stoker.store.switches import SwitchStore
from stoker.store.timelines import TimelineStore
from stoker.store.usage import UsageStore
from stoker.store.verifications import VerificationStore
from stoker.supervise.hands import Tools
from stoker.supervise.supervisor import Supervisor

Announce = Callable[[str, bool], None]
DESCRIPTORS = 65536
# A request leaves no cycles behind (tests/gateway/test_no_cycles.py), and each look goes through what all streams hold.
GC_THRESHOLDS = (5_000, 10, 10)
logger = logging.getLogger("stoker.daemon")


def serve(paths: Paths, make_app: Callable[[Control], App], announce: Announce) -> None:
    """Runs the daemon until SIGTERM, SIGINT or the control API ends it.

    `announce` is called with the address once it listens, and whether it is only this machine's, or speaks TLS.
    """
    import uvloop

    os.umask(0o077)  # what the daemon writes is for its user alone
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    config = read_config(paths.config)
    for wish in config.services.values():
        check_names(wish)
    check_acts(config.watch, config.source)
    with own_state(paths, __version__), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(paths, config, make_app, announce))


async def _run(paths: Paths, config: Config, make_app: Callable[[Control], App], announce: Announce) -> None:
    prepare_records()
    store, timelines, switches, verifications = stores = _open_stores(paths.database)
    history, menu = History(timelines), Menu(paths.config, config)
    keys = Keys(*map(read_or_make_key, (paths.key_file, paths.control_key_file, paths.engine_key_file)))
    check_exposure(config.gateway.host, {paths.key_file: keys.client, paths.control_key_file: keys.control})
    prober, crew = Prober(keys.engine), LinkedCrew(paths)
    tools = _make_tools(paths, config, keys, prober, verifications, history, lambda: door.serving, crew)
    supervisor = Supervisor(tools, store.read_all(), _saver(store), _switch_keeper(switches))
    idle = Idle(paths, config.idle, supervisor, tools, menu)
    exporter = Exporter(paths, config.limits.memory_floor_bytes, supervisor, lambda: door.serving, prober)
    metrics = GatewayMetrics(supervisor.views, __version__, exporter.prepare, exporter.pass_on)
    metrics.registry.register(exporter)
    recorder = Recorder(lambda: UsageStore(paths.usage_database, config.gateway.usage_days, config.gateway.usage_rows))
    keyring, paces = Keyring(keys.client, keys.control), Paces()
    meter = Meter(lambda record, left: _note(recorder, watching, paces, record, left), metrics.registry)
    desk = KeyDesk(paths, keyring, meter, recorder)
    fleet, ring = Fleet(paths, name_of(config), menu.remote_limits(), lambda: door.serving), LinkRing()
    box_desk = BoxDesk(paths, fleet, ring)
    control = Control(
        paths, store, history, verifications, supervisor, menu, idle, desk, lambda: watching, lambda: board, box_desk,
        RankDesk(paths, fleet.name, supervisor, crew),
    )  # fmt: skip
    audit = partial(write_audit, paths.audit)
    acts = Acts(config.watch, supervisor, menu, config.limits.restarts, control.plan, control.rollback, audit)
    watching = Watching(
        paths, config.watch, config.limits.memory_floor_bytes, supervisor, Sampler(exporter, tools), metrics, acts,
        Notices(config.watch), partial(Canaries, paths, config.watch, supervisor, tools, prober), fleet.views,
    )  # fmt: skip
    metrics.registry.register(watching)
    on_demand = OnDemand(menu, MakingWay(menu, supervisor, config.limits.switch_cooldown_s, control.plan, idle.read_run))
    here, app = Directory(supervisor.owners, menu, on_demand, history), make_app(control)
    directory = FleetDirectory(here, fleet, menu)
    door = Door(config.gateway, directory, app, metrics, keyring, meter, keys.engine, _sessions(paths, config, keys))
    boxes = Boxes(paths, config, fleet, box_desk, ring, here, door, app, lambda: watching.health())
    metrics.registry.register(boxes)
    board = Board(
        paths.database, config.limits.memory_floor_bytes, supervisor, menu, history, watching, exporter, door.serving, paces
    )
    identity = IdentityCheck(supervisor.owners, door.serving, prober.read_counters, metrics, config.gateway.identity_check_s)
    try:
        await _live(
            paths, config, supervisor, control, door, announce, switches.read(), menu, on_demand, identity, watching, boxes
        )
    finally:
        await prober.close()
        exporter.close()
        recorder.close()
        for one in reversed(stores):
            one.close()


def _open_stores(file: Path) -> tuple[ServiceStore, TimelineStore, SwitchStore, VerificationStore]:
    return ServiceStore(file), TimelineStore(file), SwitchStore(file), VerificationStore(file)


def _note(recorder: Recorder, watching: Watching, paces: Paces, record: UsageRecord, left: bool) -> None:
    recorder.note(record)
    if record.service is not None and "@" in record.service:
        return  # another box's, which watches its own
    watching.note(record, left)
    paces.note(record)


def _make_tools(
    paths: Paths, config: Config, keys: Keys, prober: Prober, verifications: VerificationStore, history: History,
    serving: Callable[[], Serving], crew: LinkedCrew,
) -> Tools:  # fmt: skip
    return Tools(
        paths=paths, limits=config.limits, instance=instance_of(paths), engine_key=keys.engine,
        read_memory=lambda: read_memory(LocalBox()), is_healthy=prober.is_healthy, prove=prober.prove,
        gate=Gatekeeper(keys.engine, config.limits.gate_s, verifications),
        in_flight=lambda service: serving().in_flight(service), heard_at=lambda service: serving().heard_at(service),
        read_counters=prober.read_counters, keep_start=_keeper(history),
        cuda_counts_cache=cache(lambda: bool(read_nvidia().unified_memory)), has_gpu=cache(lambda: bool(read_nvidia().gpus)),
        tell_failure=tell_failure, read_card=CardReader().read, crew=crew,
    )  # fmt: skip


def _sessions(paths: Paths, config: Config, keys: Keys) -> Sessions:
    return Sessions(
        keys.control, read_sessions(paths.sessions_file), lambda kept: write_sessions(paths.sessions_file, kept),
        reads_only=config.gateway.dashboard == "read-only", by_tls=config.gateway.tls_certificate is not None,
    )  # fmt: skip


async def _live(
    paths: Paths, config: Config, supervisor: Supervisor, control: Control, door: Door, announce: Announce,
    unfinished: SavedSwitch | None, menu: Menu, on_demand: OnDemand, identity: IdentityCheck,
    watching: Watching, boxes: Boxes,
) -> None:  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, control.stop_asked.set)
    servers = await _bind(config, door)
    await boxes.bind()
    async with asyncio.TaskGroup() as tasks:
        speaks_tls = len(servers) > 1
        control.url = _url_of(servers[0], "https" if speaks_tls else "http")
        _write_whole(paths.address_file, _url_of(servers[-1], "http"))
        running = tasks.create_task(supervisor.run(unfinished))
        lasting = (
            control.keep_default(), control.fixes.run(), control.ranks.run(), menu.run(), identity.run(), watching.run(),
        )  # fmt: skip
        looking = [tasks.create_task(one) for one in lasting]
        on_demand.open(tasks)
        control.proving.open(tasks)
        await door.open(servers, tasks)
        await boxes.open(tasks)
        gc.freeze()  # what is there by now stays; looking through it again and again would hold every stream up
        gc.set_threshold(*GC_THRESHOLDS)
        announce(control.url, speaks_tls or is_loopback(config.gateway.host))
        tell_ready()
        await control.stop_asked.wait()
        for number in (signal.SIGTERM, signal.SIGINT):  # the second one forces
            loop.remove_signal_handler(number)
        for server in servers:
            server.close()
        boxes.close()
        door.close_idle()
        on_demand.close()
        control.proving.close()
        for task in looking:
            task.cancel()
        await supervisor.pause("the daemon was told to stop; it comes back with the next one")
        running.cancel()
        door.cut_all()
        boxes.cut_all()


def _url_of(server: asyncio.Server, scheme: str) -> str:
    bound, port = server.sockets[0].getsockname()[:2]
    host = reachable(bound)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


async def _bind(config: Config, door: Door) -> list[asyncio.Server]:
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


def _keeper(history: History) -> Callable[[Start], None]:
    """Returns a writer of starts; one that is lost is a pity, and no reason to end what runs."""

    def keep(start: Start) -> None:
        try:
            history.write(start)
        except StokerError as problem:
            logger.warning("service=%s its start is not kept: %s", start.service, problem.why)

    return keep


def _switch_keeper(switches: SwitchStore) -> Callable[[SavedSwitch | None], None]:
    """Returns a writer of the switch under way; one that is not kept goes on all the same."""

    def keep(saved: SavedSwitch | None) -> None:
        try:
            switches.write(saved)
        except StokerError as problem:
            logger.warning("the switch is not kept for a next daemon: %s", problem.why)

    return keep


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
