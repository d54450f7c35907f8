"""Answers agents that come over HTTP: each question by a `stoker mcp` of its own, which lives as long as the answer takes.

The daemon idles with little memory and answers streams meanwhile, so that what tools need is not loaded into it. A start
takes a quarter of a second; an agent asks a few times a minute. They may look and never act: no one watches over HTTP.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from itertools import count

from stoker.config import Paths
from stoker.errors import NotReadyInTime, Refused, StokerError
from stoker.supervise.piped import running

AT_ONCE, WAITING = 2, 16
ANSWER_LIMIT_S = 180.0
ARGV = (sys.executable, "-P", "-m", "stoker", "mcp")


class Agents:
    """Starts what answers, a few at once; the others wait, or are told that too many do."""

    def __init__(self, paths: Paths, environment: Mapping[str, str] = os.environ) -> None:
        own = {"STOKER_STATE": str(paths.state), "STOKER_CONFIG": str(paths.config)}
        self._environment = {**environment, **own}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._numbers = count(1)
        self._waiting = 0

    async def ask(self, line: bytes) -> bytes:
        """Returns the line that answers a request; raises Refused or NotReadyInTime where none comes."""
        if self._waiting >= WAITING:
            raise Refused("too many agents ask at once", next_step="ask again in a few seconds")
        self._waiting += 1
        try:
            async with self._turns:
                return await self._ask(line)
        except ExceptionGroup as several:  # the program and what listens to it end together
            raise _first(several) from several
        finally:
            self._waiting -= 1

    async def _ask(self, line: bytes) -> bytes:
        marker = f"mcp/{os.getpid()}/{next(self._numbers)}"
        async with running(ARGV, self._environment, None, marker) as piped, asyncio.timeout(ANSWER_LIMIT_S):
            await piped.write_line(line)
            return await piped.read_line()


def _first(several: BaseExceptionGroup[Exception]) -> StokerError:
    for one in several.exceptions:
        if isinstance(one, StokerError):
            return one
        if isinstance(one, BaseExceptionGroup):
            return _first(one)
    return NotReadyInTime(f"no answer came within {ANSWER_LIMIT_S:.0f} s")
