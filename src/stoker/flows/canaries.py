"""Asks the canary prompts, past the gateway, while nobody asks anything of any service; stops at once where somebody does.

So they are in nobody's usage, in no count of requests, and in none of the figures that users' work is judged by.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.lease import read_run
from stoker.probes.kit.prover import Prober
from stoker.records import BEING_STARTED, Endpoint, Proof, State
from stoker.records.watching import CanaryView, WatchSettings
from stoker.supervise.hands import Tools
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor
from stoker.watch.canaries import PROMPTS, TOKENS, CanaryAnswer, CanaryCheck, CanaryRound, fingerprint
from stoker.watch.engine_page import read_page
from stoker.watch.reading import Asked, make_sample
from stoker.watch.samples import EngineSample, grown
from stoker.watch.watcher import Watcher

LOOK_S, GLANCE_S = 1.0, 0.1
AGAIN_S = 60.0  # until the next round where the last one was odd, or too few were seen
ANSWER_LIMIT_S, PAGE_LIMIT_S, COUNTED_LIMIT_S = 120.0, 3.0, 3.0
LOOKS_AFTER = 2  # the page of the first may have been read while the last words were written
EXTRA_TOKENS = 2  # an engine may count the end of an answer, or the first token twice
logger = logging.getLogger("stoker.watch")


class SomebodyAsks(Exception):
    """Somebody wants the machine: a round is given up."""


class Canaries:
    """The rounds of all services, one after the other; `run` lives as long as the daemon."""

    def __init__(
        self, paths: Paths, settings: WatchSettings, supervisor: Supervisor, tools: Tools, prober: Prober,
        watcher: Callable[[], Watcher],
    ) -> None:  # fmt: skip
        self._paths, self._settings = paths, settings
        self._supervisor, self._tools, self._prober, self._watcher = supervisor, tools, prober, watcher
        self._busy_s = float("-inf")  # on the event loop's clock
        self._asked_s: dict[str, float] = {}
        self._looks_left: dict[str, int] = {}
        self._now: str | None = None

    async def run(self) -> None:
        """Asks now and then until cancelled; never where `canary_every_s` is not set."""
        while self._settings.canary_every_s is not None:
            await asyncio.sleep(LOOK_S)
            if self._quiet_s() < self._settings.canary_quiet_s or (owner := self._next_due()) is None:
                continue
            try:
                await self._ask(owner)
            except Exception:  # a fault here must not end the daemon, and with it all services
                logger.exception("service=%s asking canary prompts failed", owner.plan.service)
                self._asked_s[owner.plan.service] = time.monotonic()

    def took_part(self, service: str) -> bool:
        """Tells at each look whether what was counted since the last one may be of canary prompts."""
        left = self._looks_left.get(service, 0)
        if left and self._now != service:
            self._looks_left[service] = left - 1
        return left > 0

    def view(self, owner: ServiceOwner) -> CanaryView | None:
        """Returns the last round of a service; None where there was none."""
        last = self._check(owner).last if self._settings.canary_every_s is not None else None
        if last is None:
            return None
        return CanaryView(time.time() - (time.monotonic() - last.at_s), last.ttft_s, last.token_s, last.accept_rate)

    def _check(self, owner: ServiceOwner) -> CanaryCheck:
        return self._watcher().canaries(owner.plan.service, owner.plan.plan_id)

    def _quiet_s(self) -> float:
        """Returns for how long nobody has asked anything of any service, nor any was on its way up; negative while so."""
        now = asyncio.get_running_loop().time()
        if self._is_anybody_busy():
            self._busy_s = now
            return -1.0
        return now - max([self._busy_s, *map(self._tools.heard_at, self._supervisor.owners)])

    def _is_anybody_busy(self) -> bool:
        owners = self._supervisor.owners.items()
        is_asked = any(self._tools.in_flight(name) or owner.service.state in BEING_STARTED for name, owner in owners)
        return is_asked or read_run(self._paths) is not None

    def _next_due(self) -> ServiceOwner | None:
        now = time.monotonic()
        due = [
            owner for name, owner in self._supervisor.owners.items()
            if self._can_be_asked(owner) and now - self._asked_s.get(name, float("-inf")) >= self._pause_s(owner)
        ]  # fmt: skip
        return min(due, key=lambda owner: self._asked_s.get(owner.plan.service, float("-inf")), default=None)

    def _can_be_asked(self, owner: ServiceOwner) -> bool:
        plan = owner.plan
        return owner.service.state is State.READY and plan.is_engine and plan.answers and owner.endpoint is not None

    def _pause_s(self, owner: ServiceOwner) -> float:
        every_s, check = self._settings.canary_every_s or 0.0, self._check(owner)
        doubted_s = self._watcher().doubted_since_s(owner.plan.service)
        is_asked_for = doubted_s is not None and (check.last is None or check.last.at_s < doubted_s)
        return min(every_s, AGAIN_S) if is_asked_for or check.is_in_doubt or check.is_learning else every_s

    async def _ask(self, owner: ServiceOwner) -> None:
        """Asks one service a round, if nobody comes in between."""
        name, check = owner.plan.service, self._check(owner)
        self._now = name
        self._looks_left[name] = LOOKS_AFTER
        try:
            one = await self._round(owner)
        except SomebodyAsks:
            logger.info("service=%s canary prompts give way: somebody asks", name)
            return
        except StokerError as problem:
            if owner.service.state is State.READY:  # one that is stopped meanwhile owes nobody an answer
                check.fail(problem.what)
                logger.warning("service=%s did not answer a canary prompt: %s", name, problem.what)
        else:
            check.take(one)
            logger.info("service=%s canary %s", name, _said(one))
        finally:
            self._now = None
        self._asked_s[name] = time.monotonic()

    async def _round(self, owner: ServiceOwner) -> CanaryRound:
        endpoint = owner.endpoint
        if endpoint is None:
            raise SomebodyAsks
        before = await self._count(owner, endpoint)
        if before.running or before.waiting:  # past the gateway
            self._busy_s = asyncio.get_running_loop().time()
            raise SomebodyAsks
        logger.info("service=%s canary prompts begin", owner.plan.service)
        proofs = [await self._unless_asked(self._prober.ask(endpoint, prompt, TOKENS)) for prompt in PROMPTS]
        said = sum(one.tokens for one in proofs)
        after = await self._await_count(owner, endpoint, before, said)
        growth = grown(before, after)
        is_alone = growth is not None and (growth.generated or 0) <= said + EXTRA_TOKENS * len(PROMPTS)
        drafts = (growth.drafted, growth.accepted) if growth is not None and is_alone else (None, None)
        return CanaryRound(time.monotonic(), tuple(map(_answer, proofs)), *drafts)

    async def _unless_asked(self, answer: Coroutine[Any, Any, Proof]) -> Proof:
        """Returns the answer; raises SomebodyAsks as soon as somebody does, and StokerError where none comes in time."""
        loop, has_come = asyncio.get_running_loop(), False
        next_glance: asyncio.TimerHandle | None = None

        def glance() -> None:
            nonlocal has_come, next_glance
            has_come = self._quiet_s() < 0
            if has_come:
                limit.reschedule(loop.time())  # the stream is closed, which ends the work
            else:
                next_glance = loop.call_later(GLANCE_S, glance)

        try:
            async with asyncio.timeout(ANSWER_LIMIT_S) as limit:
                glance()
                return await answer
        except TimeoutError as problem:
            if has_come:
                raise SomebodyAsks from problem
            raise StokerError(f"it did not end an answer of {TOKENS} tokens within {ANSWER_LIMIT_S:g} s") from problem
        finally:
            if next_glance is not None:
                next_glance.cancel()

    async def _count(self, owner: ServiceOwner, endpoint: Endpoint) -> EngineSample:
        """Returns what the engine has counted until now; all unknown where it does not say."""
        asked = Asked(time.monotonic(), owner.service.launch, 0, None)
        try:
            text = await self._prober.read_page(endpoint, PAGE_LIMIT_S)
        except StokerError:
            return make_sample({}, None, asked, "")
        page = await asyncio.to_thread(read_page, owner.plan.engine, text)
        return make_sample(page.values, None, asked, "")

    async def _await_count(self, owner: ServiceOwner, endpoint: Endpoint, before: EngineSample, said: int) -> EngineSample:
        """Returns what it has counted once the answers are in it, or a moment later."""
        until_s = time.monotonic() + COUNTED_LIMIT_S
        while True:
            after = await self._count(owner, endpoint)
            is_counted = None in (before.generated, after.generated) or _grew(before, after) >= said - len(PROMPTS)
            if is_counted or time.monotonic() > until_s:
                return after
            await asyncio.sleep(GLANCE_S)


def _grew(before: EngineSample, after: EngineSample) -> int:
    return (after.generated or 0) - (before.generated or 0)


def _answer(proof: Proof) -> CanaryAnswer:
    token_s = (proof.took_s - proof.ttft_s) / (proof.tokens - 1) if proof.tokens > 1 else None
    return CanaryAnswer(fingerprint(proof.text), proof.ttft_s, token_s)


def _said(one: CanaryRound) -> str:
    parts = (("ttft_s", one.ttft_s), ("token_s", one.token_s), ("accept_rate", one.accept_rate))
    return " ".join(f"{name}={value:.3f}" for name, value in parts if value is not None)
