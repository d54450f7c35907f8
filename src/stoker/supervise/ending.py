"""The jobs that take a service down: its requests, its processes, its memory."""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from stoker.records import CardMemory, Service, State, say_bytes
from stoker.supervise import machine
from stoker.supervise.card import await_card_settled, say_card_holders
from stoker.supervise.guard import await_settled, missing_bytes
from stoker.supervise.hands import Hands
from stoker.supervise.machine import Event
from stoker.supervise.runtimes import Running, StoppedElsewhere
from stoker.supervise.runtimes.choose import holds_already

DRAIN_POLL_S = 0.02
EXIT_POLL_S, EXIT_POLLS = 0.02, 15
KILL_LIMIT_S = 10.0
# One that was never ready answers nobody, and has nothing to finish; vLLM 0.32.0 ends at no SIGTERM while it loads.
UNREADY_GRACE_S = 3.0
logger = logging.getLogger("stoker.supervise")


async def await_exit(hands: Hands, running: Running, launch: int) -> Event:
    """Waits until the engine ends, and tells why it did."""
    try:
        how = await running.wait()
    except StoppedElsewhere as told:
        return machine.StopAsked(time.time(), told.what)
    except Exception as problem:  # one engine's oddity must not end the daemon, and with it all other services
        logger.exception("service=%s is not watched any more", hands.plan.service)
        how = f"Stoker itself failed to watch it ({type(problem).__name__}: {problem}); see daemon.log"
    finally:
        running.close()
    hands.end_timeline(None)
    if hands.load is not None:
        await hands.load.end()
    during = f" while its gate asked for {hands.gate_step}" if hands.gate_step else ""
    return machine.Exited(time.time(), f"the engine ended ({how}){during}", launch=launch)


async def let_exit_tell(hands: Hands) -> None:
    """Waits for ever where the engine ends within a moment, as one does whose connections broke: its exit tells more."""
    for _ in range(EXIT_POLLS):
        if hands.running is None or not hands.running.is_alive():
            await asyncio.Event().wait()  # the event of its exit ends the job that waits here
        await asyncio.sleep(EXIT_POLL_S)


async def drain(hands: Hands, service: Service) -> Event:
    """Waits until nobody is being answered any more."""
    end = time.monotonic() + hands.tools.limits.drain_s
    while left := hands.tools.in_flight(hands.plan.service):
        if time.monotonic() > end:
            return machine.Drained(time.time(), f"{left} requests did not end within drain_s and were cut")
        await asyncio.sleep(DRAIN_POLL_S)
    return machine.Drained(time.time(), "no request was left")


async def stop_group(hands: Hands, service: Service) -> Event:
    """Ends every process of the launch; but one that was adopted and never proved itself is let go as it was found."""
    if _was_only_looked_at(hands, service):
        hands.running, hands.handle = None, None
        return machine.GroupGone(time.time(), "it was let go, and runs on as before")
    grace_s = 0.0 if hands.hurry else hands.tools.limits.stop_grace_s
    if not service.was_ready:
        grace_s = min(grace_s, UNREADY_GRACE_S)
    left = await hands.runtime.stop(hands.running, grace_s, KILL_LIMIT_S)
    if left:
        return machine.GroupStuck(time.time(), left)
    hands.running, hands.hurry = None, False
    return machine.GroupGone(time.time(), "none of its processes is left")


def _was_only_looked_at(hands: Hands, service: Service) -> bool:
    """A mistaken --model-name must not cost anybody their engine; one that eats all memory is ended all the same."""
    adopted = hands.plan.adopted is not None and holds_already(hands.plan)
    return adopted and not service.was_ready and not hands.hurry and service.then is State.FAILED


async def settle(hands: Hands, service: Service) -> Event:
    """Waits until the memory is back; then the log of one that failed is asked for the reason, if it said anything."""
    settled = await _settle(hands, service)
    # One that is to be started again has no time for that: `stoker diagnose` tells of it as long as the next start is well.
    if service.then is not State.FAILED or not isinstance(settled, machine.Settled) or not hands.log.tail(1):
        return settled
    return msgspec.structs.replace(settled, told=await hands.tools.tell_failure(hands.plan.service))


async def _settle(hands: Hands, service: Service) -> Event:
    handle, limit_s = hands.handle, hands.tools.limits.settle_s
    if handle is None:
        return machine.Settled(time.time(), "it held no memory")
    last_bytes = hands.last_available_bytes
    known_bytes = handle.memory_before_bytes if last_bytes is None else last_bytes
    left_bytes, (card_left_bytes, card) = await asyncio.gather(
        await_settled(lambda memory: missing_bytes(memory, handle, known_bytes), limit_s, hands.tools.read_memory),
        await_card_settled(handle, hands.last_card_free_bytes, limit_s, hands.tools.read_card),
    )
    if hands.memory_is_lost and service.then is State.WAITING_FOR_MEMORY:
        left_bytes = card_left_bytes = 0  # it was waited for before: whether there is room without it is for the gate to say
    hands.memory_is_lost = left_bytes > 0 or card_left_bytes > 0
    if hands.memory_is_lost:
        why = f"{_say_missing(left_bytes, card_left_bytes, card)} not back after {limit_s:g} s (settle_s)"
        if card is not None and card_left_bytes:
            why += f"; most of the card is held by: {say_card_holders(card)}"
        return machine.NotSettled(time.time(), why)
    hands.handle = None
    hands.last_available_bytes = hands.last_card_free_bytes = None
    return machine.Settled(time.time(), "its memory is back")


def _say_missing(left_bytes: int, card_left_bytes: int, card: CardMemory | None) -> str:
    told = [f"{say_bytes(left_bytes)} of its memory"] if left_bytes else []
    if card is not None and card_left_bytes:
        told.append(f"{say_bytes(card_left_bytes)} of its memory on the card ({card.name})")
    return f"{' and '.join(told)} were"


async def back_off(hands: Hands, service: Service) -> Event:
    """Pauses before the next restart."""
    await asyncio.sleep(machine.backoff_s(service))
    count = len(service.restarts)
    return machine.BackoffOver(time.time(), f"restart {count} of {hands.tools.limits.restarts}")
