"""The job that proves an engine: real tokens of the model by name, then what its plan requires of it."""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from stoker.errors import NotReadyInTime, StokerError
from stoker.records import Measured, Proof, Service
from stoker.records.ranks import Seat
from stoker.supervise import machine
from stoker.supervise.ending import let_exit_tell
from stoker.supervise.gating import stand_before_gate
from stoker.supervise.hands import Hands, known
from stoker.supervise.logs import RING_LINES
from stoker.supervise.machine import Event
from stoker.supervise.runtimes.ranked import RankedRunning
from stoker.supervise.transport import read_transport

logger = logging.getLogger("stoker.supervise")


async def prove(hands: Hands, service: Service) -> Event:
    """Asks for a first answer and then for what the gate requires; what was measured on the way is kept."""
    if hands.plan.seat is not None:
        return await _prove_rank(hands, hands.plan.seat)
    if not hands.plan.answers:
        _measure_claim(hands)
        await _measure_card(hands)
        return machine.Proved(time.time(), "it says that it is up; it is no model that could be asked for tokens")
    proof, proved_at = await _first_answer(hands), time.time()
    if isinstance(hands.running, RankedRunning):
        await hands.running.tell_whole()
    _measure_claim(hands)
    await _measure_card(hands)
    passed = await stand_before_gate(hands, service)
    await _keep_image(hands)
    said = f"{proof.model} answered; first token after {proof.ttft_s * 1000:.0f} ms{_over(hands)}"
    return machine.Proved(
        time.time(), "; ".join(filter(None, (said, passed, await _end_load(hands, proved_at if passed else None))))
    )


async def _prove_rank(hands: Hands, seat: Seat) -> Event:
    """A part is proved by an answer of the whole, which the head alone can ask for; the lease bounds the wait."""
    hands.transport = read_transport(hands.log.tail(RING_LINES))
    if hands.tools.crew is None:
        raise StokerError("it is a rank, and this supervisor knows no other boxes")
    await hands.tools.crew.await_whole(hands.plan.service)
    _measure_claim(hands)
    await _measure_card(hands)
    await _end_load(hands, None)
    return machine.Proved(time.time(), f"rank {seat.rank} of {seat.size}: the whole answered on {seat.head}{_over(hands)}")


def _over(hands: Hands) -> str:
    """Says what NCCL goes over, where this is one of several ranks and its log tells."""
    if hands.plan.parts or hands.plan.seat:
        hands.transport = read_transport(hands.log.tail(RING_LINES)) or hands.transport
    return f", over {hands.transport}" if hands.transport else ""


async def _first_answer(hands: Hands) -> Proof:
    limit_s = hands.tools.limits.prove_s
    try:
        async with asyncio.timeout(limit_s):
            return await hands.tools.prove(known(hands.endpoint))
    except TimeoutError as problem:
        raise NotReadyInTime(f"it gave no token within {limit_s:g} s (prove_s)") from problem
    except StokerError:
        await let_exit_tell(hands)
        raise


async def _keep_image(hands: Hands) -> None:
    """Keeps the image in which a service was READY from being pruned, so that it can go back to it."""
    if hands.plan.image is None or hands.running is None:
        return
    try:
        await hands.runtime.keep_good(hands.running, hands.plan.image)
    except StokerError as problem:  # it serves all the same
        logger.warning("service=%s its image is not kept: %s", hands.plan.service, problem.what)


async def _end_load(hands: Hands, proved_at: float | None) -> str:
    timeline, load = hands.end_timeline(time.time(), proved_at), hands.load
    if load is None:
        return ""
    await load.end()
    return load.say(timeline)


def _measure_claim(hands: Hands) -> None:
    handle, available_bytes = hands.handle, hands.tools.read_memory().available_bytes
    if handle is None or handle.memory_claim_bytes:
        return
    before_bytes = handle.memory_before_bytes
    claim_bytes = min(max(0, before_bytes - available_bytes), _own_bytes(hands))
    hands.handle = msgspec.structs.replace(handle, memory_claim_bytes=claim_bytes)
    if hands.low_bytes is not None:  # one that was taken back has had its peak unseen
        least_bytes = min(available_bytes, hands.low_bytes)
        hands.measured = Measured(hands.plan.plan_id, max(0, before_bytes - least_bytes))


async def _measure_card(hands: Hands) -> None:
    """Keeps what the engine took of the card: what the driver tells of its processes, else what is gone since its start."""
    handle, running = hands.handle, hands.running
    if handle is None or running is None or handle.card_before_bytes is None or handle.card_claim_bytes:
        return
    card = await hands.read_card()
    if card is None:
        return
    pids = frozenset(await asyncio.to_thread(running.pids))
    told_bytes = sum(process.used_bytes or 0 for process in card.processes if process.pid in pids)
    claim_bytes = told_bytes or max(0, handle.card_before_bytes - card.free_bytes)
    hands.handle = msgspec.structs.replace(known(hands.handle), card_claim_bytes=claim_bytes)
    hands.last_card_free_bytes = card.free_bytes


def _own_bytes(hands: Hands) -> int:
    """The most of what is gone that can be the engine's: what others took meanwhile does not come back when it stops.

    Without this a stop waited 38 s for 600 MiB that other programs had taken during the load (docs/measured/switching.md).
    """
    resident_bytes = hands.running.memory_bytes() if hands.running else None
    return max(hands.plan.host_need_bytes, resident_bytes or 0)
