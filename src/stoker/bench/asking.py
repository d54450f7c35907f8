"""Asks small questions beside a measurement: lists, counts of tokens, counters. While the clock runs, only of a soak."""

from __future__ import annotations

from typing import Any

import msgspec

from stoker.bench.exchange import OK, Exchange, Job
from stoker.bench.lines import Lines
from stoker.bench.origin import Origin
from stoker.bench.player import Rules, play

LIMIT_S = 60.0


class Asker:
    """Asks one origin, over connections of its own."""

    def __init__(self, origin: Origin, *, reuses: bool = True) -> None:
        self.origin = origin
        self._lines = Lines(origin, reuses=reuses)

    def send(self, method: str, path: str, body: object = None, limit_s: float = LIMIT_S) -> Exchange:
        """Returns what came back, whatever it is."""
        raw = b"" if body is None else msgspec.json.encode(body)
        job = Job(self.origin.request(method, path, raw))
        return play(self._lines, [job], Rules(silence_s=limit_s, most=1)).exchanges[0]

    def read(self, path: str) -> str:
        """Returns a page's text; empty where it cannot be had."""
        exchange = self.send("GET", path)
        return exchange.body().decode(errors="replace") if is_good(exchange) else ""

    def read_json(self, method: str, path: str, body: object = None) -> Any:
        """Returns a reply's value; None where it cannot be had or is no JSON."""
        exchange = self.send(method, path, body)
        try:
            return msgspec.json.decode(exchange.body()) if is_good(exchange) else None
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def another(self) -> Asker:
        """Returns one that asks the same origin over connections of its own, for another thread."""
        return Asker(self.origin, reuses=self._lines.reuses)

    def keep_none(self) -> None:
        """Keeps no connection from now on, for a server that holds a thread for each."""
        self._lines.reuses = False
        self._lines.poll(0.0)

    def close(self) -> None:
        """Closes its connections."""
        self._lines.close()


def is_good(exchange: Exchange) -> bool:
    """Tells whether a reply is whole and no error."""
    return exchange.status == OK and not exchange.problem
