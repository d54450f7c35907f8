"""Follows the requests of each caller: counts, limits and records them, and cuts those of a revoked key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from prometheus_client import CollectorRegistry

from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.keyring import Caller, Denial
from stoker.gateway.refusals import refuse
from stoker.gateway.tally import Tally
from stoker.gateway.usage import Usage
from stoker.records import UsageRecord

Note = Callable[[UsageRecord, bool], None]


class Meter:
    """`note` gets a record of each request as it ends, and whether its client left before; it must not wait."""

    def __init__(self, note: Note, registry: CollectorRegistry) -> None:
        self._note = note
        self._running: defaultdict[str, dict[Exchange, None]] = defaultdict(dict)  # in their order
        self._requests = Tally(
            "stoker_gateway_key_requests", "Requests for models ended, by key and status; status 0: no reply was begun.",
            ("key", "status"), registry,
        )  # fmt: skip
        self._tokens = Tally(
            "stoker_gateway_key_tokens", "Tokens as the engines counted them, by key and kind (prompt, completion, cached).",
            ("key", "kind"), registry,
        )  # fmt: skip

    def begin(self, exchange: Exchange, caller: Caller) -> Usage:
        """Follows a request from here on; `end` has to be called when it is done."""
        exchange.usage = Usage(caller, exchange.request.path, exchange.request_id.decode("latin-1"))
        self._running[caller.name][exchange] = None
        return exchange.usage

    def end(self, exchange: Exchange) -> None:
        """Records a request that is done; one that was never begun here, or has ended, is none."""
        usage = exchange.usage
        if usage is None:
            return
        exchange.usage = None
        self._running[usage.caller.name].pop(exchange, None)
        record = usage.record(exchange.outcome)
        self._count(record)
        self._note(record, exchange.left)

    def _count(self, record: UsageRecord) -> None:
        self._requests.add((record.key, str(record.status or 0)))
        kinds = ("prompt", record.prompt_tokens), ("completion", record.completion_tokens), ("cached", record.cached_tokens)
        for kind, tokens in kinds:
            if tokens is not None:
                self._tokens.add((record.key, kind), tokens)

    def cut(self, name: str) -> int:
        """Ends what runs under a key, engines included, and never as if it were whole; returns how many that were."""
        exchanges = list(reversed(self._running[name]))  # else the end of one would let the next one begin
        for exchange in exchanges:
            _cut(exchange, Denial(401, "revoked_api_key", f"The key `{name}` was revoked."))
        return len(exchanges)


def _cut(exchange: Exchange, denial: Denial) -> None:
    is_begun = exchange.status is not None and not exchange.waits
    # To one who does not read nothing is said: it would keep the connection.
    is_told = is_begun and not exchange.paused and exchange.on_cut is not None and exchange.on_cut(denial)
    exchange.on_gone()
    if exchange.done:
        return
    if not is_begun:
        refuse_denied(exchange, denial)
    elif is_told:
        exchange.break_off()
    else:
        exchange.abort()


def refuse_denied(exchange: Exchange, denial: Denial, named: Headers | None = None) -> None:
    """Answers somebody who is not let in; `named` are the headers that say of what, where he may know it."""
    headers = [(b"www-authenticate", b"Bearer"), *(named or [])] if denial.status == 401 else [*(named or [])]
    if denial.retry_after_s is not None:
        headers.append((b"retry-after", str(denial.retry_after_s).encode()))
    refuse(exchange, denial.status, denial.code, denial.message, kind=denial.kind, headers=headers)
