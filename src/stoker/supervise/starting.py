"""The jobs that bring a service up: room, engine, health. Each ends in the event that it brought about."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import msgspec

from stoker.errors import NotReadyInTime, Refused
from stoker.facts.machine.memory import read_holders
from stoker.facts.machine.ports import is_port_free, pick_free_port, read_listener
from stoker.facts.model.read import read_digest
from stoker.launch.command import render_engine
from stoker.launch.inner_port import with_inner_port
from stoker.records import Endpoint, Handle, LaunchSpec, Memory, Service, say_bytes
from stoker.supervise import machine
from stoker.supervise.card import CardRoom, describe_card, say_card_free
from stoker.supervise.guard import await_room, can_ever_fit, describe_shortage, drop_page_cache
from stoker.supervise.hands import HOST, Hands, known
from stoker.supervise.load_help import LoadHelp
from stoker.supervise.logs import RING_LINES
from stoker.supervise.machine import Event
from stoker.supervise.plan_files import write_beside
from stoker.supervise.process import read_boot_id
from stoker.supervise.runtimes import Start
from stoker.supervise.runtimes.choose import holds_already

HEALTH_FIRST_POLL_S = 0.03
HEALTH_LAST_POLL_S = 0.25
EVERY_ADDRESS = "0.0.0.0"  # where torch listens for the processes of one engine, whatever address is named
TIMED_OUT = NotReadyInTime.exit_code
REFUSED = Refused.exit_code


async def await_memory(hands: Hands, service: Service) -> Event:
    """Waits until no other service is being started, then for room."""
    hands.waits_for_turn = hands.tools.turn.locked()
    await hands.tools.turn.acquire()
    hands.has_turn, hands.waits_for_turn = True, False
    if holds_already(hands.plan):
        return machine.MemoryFree(time.time(), "it runs already, so it holds what it needs")
    need_bytes, limits = hands.need_bytes, hands.tools.limits
    card = CardRoom(hands.plan.card_need_bytes, hands.tools.read_card, hands.note_card)
    if await await_room(need_bytes, limits.memory_floor_bytes, limits.memory_wait_s, hands.tools.read_memory, card):
        cache = await _clear_cache(hands, need_bytes)
        on_card = say_card_free(card.need_bytes, card.seen)
        return machine.MemoryFree(time.time(), f"{say_bytes(need_bytes)} are free for it{on_card}{cache}")
    memory = hands.tools.read_memory()
    shortage = _describe_shortage(need_bytes, limits.memory_floor_bytes, memory, card)
    if can_ever_fit(need_bytes, limits.memory_floor_bytes, memory) and card.can_ever_be():
        why = f"no room within {limits.memory_wait_s:g} s (memory_wait_s): {shortage}"
        return machine.MemoryRefused(time.time(), why, TIMED_OUT)
    where = "this machine" if card.can_ever_be() else "this machine's card"
    return machine.MemoryRefused(time.time(), f"it does not fit in {where}: {shortage}", REFUSED)


def _describe_shortage(need_bytes: int, floor_bytes: int, memory: Memory, card: CardRoom) -> str:
    """Says of each memory that is short what is needed, what is free and who holds most; else of the machine's."""
    told = [describe_card(card.need_bytes, card.seen)] if card.seen is not None and card.is_short else []
    if not told or memory.available_bytes < need_bytes + floor_bytes:
        told.insert(0, describe_shortage(need_bytes, floor_bytes, memory, read_holders()))
    return "; and ".join(told)


async def _clear_cache(hands: Hands, need_bytes: int) -> str:
    """Empties the page cache where CUDA would not see what it holds as free; returns what is to be said of it."""
    free_bytes = hands.tools.read_memory().free_bytes
    if not hands.plan.is_engine or free_bytes >= need_bytes or not await asyncio.to_thread(hands.tools.cuda_counts_cache):
        return ""
    held = f"; CUDA sees {say_bytes(free_bytes)} of it, the page cache holds the rest"
    if not hands.tools.limits.drop_page_cache:
        return f"{held}: `drop_page_cache = true` in [limits] empties it, or `sudo sysctl vm.drop_caches=1`"
    if not await asyncio.to_thread(drop_page_cache):
        return f"{held}, and only root may empty it: `sudo sysctl vm.drop_caches=1`"
    return "; the page cache was emptied for it"


async def spawn(hands: Hands, service: Service) -> Event:
    """Starts the engine; its handle is saved before, so that no daemon can lose sight of it."""
    port = _choose_port(hands)
    _check_unchanged(hands)
    marker = f"{hands.tools.instance}/{hands.plan.service}/{service.launch}"
    hands.load = None if holds_already(hands.plan) else LoadHelp(hands.plan)
    if hands.load is not None:
        await hands.load.measure()
    card = await hands.read_card()
    before = hands.tools.read_memory()
    hands.watch_launch(before.available_bytes)
    fresh = Handle(service.launch, marker, None, None, read_boot_id(), port, before.available_bytes)
    if card is not None:
        fresh = msgspec.structs.replace(fresh, card_before_bytes=card.free_bytes, card_held_before_bytes=card.held_bytes)
    hands.keep(msgspec.structs.replace(fresh, anonymous_before_bytes=before.anonymous_bytes))
    if not holds_already(hands.plan):
        hands.log.mark_launch(hands.plan.service, service.launch)
    hands.begin_timeline()
    hands.transport = None
    folder = hands.tools.paths.ray_folder(hands.plan.service)
    written = await asyncio.to_thread(write_beside, hands.plan, hands.tools.paths.plan_files)
    plan = with_inner_port(written, lambda: pick_free_port(EVERY_ADDRESS, but=port))
    start = Start(plan, service.launch, marker, port, hands.tools.engine_key, hands.log.file, folder)
    hands.running = await hands.runtime.start(start, known(hands.handle), hands.keep)
    limits = hands.tools.limits
    if hands.load is not None:
        hands.load.begin(hands.running.pids, limits.read_ahead_bytes, limits.memory_floor_bytes, hands.tools.read_memory)
    return machine.Spawned(time.time(), f"the engine runs as pid {hands.running.pid}")


def _choose_port(hands: Hands) -> int:
    port = hands.plan.port
    if port == 0:
        return pick_free_port(HOST)
    if holds_already(hands.plan):
        return port
    if not is_port_free(HOST, port):
        who = read_listener(port) or "another program, which does not let itself be seen"
        raise Refused(f"port {port} is taken by {who}", next_step=f"end it, or give {hands.plan.service} another port")
    return port


def _check_unchanged(hands: Hands) -> None:
    if hands.plan.model_path and read_digest(Path(hands.plan.model_path)) != hands.plan.revision:
        raise Refused(
            f"{hands.plan.model_path} is not the file that was planned for",
            why="its content changed, and answers would go out under the old revision",
            next_step=f"`stoker up {hands.plan.service}` plans anew; without a table in stoker.toml `stoker up MODEL`",
        )


async def await_health(hands: Hands, service: Service) -> Event:
    """Asks the engine for its health until it says yes."""
    endpoint = known(hands.endpoint)
    spec = render_engine(hands.plan, endpoint.port)
    pause_s, limit_s = HEALTH_FIRST_POLL_S, hands.tools.limits.load_s
    end = time.monotonic() + limit_s
    if spec.ready_line and service.was_ready:  # a former daemon saw the line, which is not printed again
        return machine.Healthy(time.time(), "it said before that it is up")
    while not await _says_ready(hands, endpoint, spec):
        if time.monotonic() > end:
            return machine.Unfit(time.time(), f"it did not load within {limit_s:g} s (load_s)", TIMED_OUT)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, HEALTH_LAST_POLL_S)
    return machine.Healthy(time.time(), "the engine says it is ready, which proves nothing")


async def _says_ready(hands: Hands, endpoint: Endpoint, spec: LaunchSpec) -> bool:
    """Asks its health where it has one, else looks for the line of its log that says so."""
    if spec.health_path:
        return await hands.tools.is_healthy(endpoint, spec.health_path)
    pattern = re.compile(spec.ready_line or "(?!)")
    return any(pattern.search(line) for line in hands.log.tail(RING_LINES))
