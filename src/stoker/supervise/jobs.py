"""What a service's owner does to the world: one coroutine a job, each ending in the event that it brought about."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from stoker.errors import StokerError
from stoker.records import Service
from stoker.supervise import ending, machine, proving, starting
from stoker.supervise.hands import Hands
from stoker.supervise.machine import Event, Job

logger = logging.getLogger("stoker.supervise")

Work = Callable[[Hands, Service], Awaitable[Event]]

# What each job does, and the event it ends with where it fails.
WORK: dict[Job, tuple[Work, type[Event]]] = {
    Job.AWAIT_MEMORY: (starting.await_memory, machine.MemoryRefused),
    Job.SPAWN: (starting.spawn, machine.SpawnFailed),
    Job.AWAIT_HEALTH: (starting.await_health, machine.Unfit),
    Job.PROVE: (proving.prove, machine.Unfit),
    Job.DRAIN: (ending.drain, machine.Drained),
    Job.STOP_GROUP: (ending.stop_group, machine.GroupStuck),
    Job.SETTLE: (ending.settle, machine.NotSettled),
    Job.BACK_OFF: (ending.back_off, machine.BackoffOver),
}


async def do(hands: Hands, job: Job, service: Service) -> Event:
    """Runs a job to its end; a fault of whatever kind ends in the event that this job fails with."""
    work, fault = WORK[job]
    try:
        return await work(hands, service)
    except (StokerError, OSError) as problem:
        code = problem.exit_code if isinstance(problem, StokerError) else StokerError.exit_code
        return fault(time.time(), str(problem).replace("\n  ", "; "), code)
    except Exception as problem:  # one engine's oddity must not end the daemon, and with it all other services
        logger.exception("service=%s job=%s", hands.plan.service, job.name)
        return fault(time.time(), f"Stoker itself failed ({type(problem).__name__}: {problem}); see daemon.log")
