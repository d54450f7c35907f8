"""Plays probes one after the other, within one budget; whatever the other side does becomes a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.calm import calm_down
from stoker.probes.kit.context import read_name
from stoker.probes.kit.evidence import hide_pieces
from stoker.probes.kit.findings import Declined, Finding, OutOfTime, Trouble, failed, unknown
from stoker.probes.kit.probe import Check, Probe, name_of
from stoker.probes.kit.wire import Wire
from stoker.records import CheckResult, ProbeResult, Target, Verdict, Verification, worst

FIRST = "answers"  # where its first check fails, nothing else can be asked
TOO_MANY = 429
Note = Callable[[ProbeResult], None]
Begin = Callable[[Probe], None]


class Player:
    """Plays probes against one target; `in_time` tells whether the budget was enough."""

    def __init__(self, target: Target, wire: Wire, budget_s: float, required: frozenset[str]) -> None:
        self.engine: str | None = None
        self.in_time = True
        self._ask = Asker(target, wire, time.monotonic() + budget_s)
        self._required = required
        self._is_silent = False

    async def prepare(self) -> None:
        """Learns what the engine is, what it calls the model, and what keeps that from thinking first."""
        if self._is_silent:
            return
        try:
            counters = await self._ask.read_counters()
            self.engine = counters.engine if counters else None
            if (engine := self._ask.engine()) is not None:
                self._ask.engine_model = await read_name(engine)
            await calm_down(self._ask)
        except OutOfTime:
            self.in_time = False
        self._ask.take_exchanges()

    async def play(self, probe: Probe) -> ProbeResult:
        """Returns what a probe finds, check by check."""
        begun, checks = time.monotonic(), list[CheckResult]()
        for check in probe.checks:
            checks.append(await self._play_check(check, probe))
            self._is_silent = self._is_silent or (probe.name == FIRST and checks[0].verdict is Verdict.FAIL)
        verdict = worst([one.verdict for one in checks])
        return ProbeResult(probe.name, verdict, round(time.monotonic() - begun, 3), tuple(checks))

    async def _play_check(self, check: Check, probe: Probe) -> CheckResult:
        finding = unknown("not asked, since nothing answers") if self._is_silent else await self._judge(check)
        if finding.verdict is Verdict.NOT_OFFERED and probe.name in self._required:
            finding = failed(f"required, and not offered: {finding.says}", finding.mend)
        if finding.verdict is Verdict.FAIL and not finding.mend:
            finding = finding._replace(mend=probe.mend)
        # Errors like to repeat the key that they refuse.
        says, mend = (hide_pieces(text, self._ask.secrets) for text in (finding.says, finding.mend))
        return CheckResult(name_of(check), finding.verdict, says, mend, self._ask.take_exchanges())

    async def _judge(self, check: Check) -> Finding:
        try:
            return await check(self._ask)
        except OutOfTime:
            self.in_time = False
            return unknown("the time was over before it could be asked to its end", "give more with --budget, or --deep")
        except Declined as no:
            return unknown(f"it is too busy to tell: {no.says}") if no.status == TOO_MANY else failed(no.says)
        except Trouble as trouble:
            return failed(trouble.says, trouble.mend)


def ignore(probe: Probe) -> None:
    """Says nothing of a probe that begins."""


async def play_probes(
    target: Target, probes: Sequence[Probe], budget_s: float, required: frozenset[str], note: Note, begin: Begin = ignore
) -> Verification:
    """Plays all probes, tells `begin` of each and `note` how it ended; what a `required` one does not offer is a failure."""
    wire, results, begun = Wire(_speaks_tls(target)), list[ProbeResult](), time.time()
    player = Player(target, wire, budget_s, required)
    try:
        if probes and probes[0].name != FIRST:
            await player.prepare()
        for probe in probes:
            begin(probe)
            results.append(await player.play(probe))
            note(results[-1])
            # Not before: an endpoint that hangs shall not use up the budget before it was asked to answer.
            if probe.name == FIRST:
                await player.prepare()
    finally:
        await wire.close()
    return Verification(
        url=target.url, model=target.model, engine=player.engine, begun=begun, took_s=round(time.time() - begun, 3),
        budget_s=budget_s, in_time=player.in_time, verdict=worst([one.verdict for one in results]), probes=tuple(results),
        box=target.box,
    )  # fmt: skip


def _speaks_tls(target: Target) -> bool:
    return any(url.startswith("https:") for url in (target.url, target.engine_url or ""))
