"""What is known of one request's usage while it is under way; whoever reads the engine's reply fills in the numbers."""

from __future__ import annotations

import time

from stoker.gateway.keyring import Caller
from stoker.records import UsageRecord

PATH_LIMIT = 100
MOST_TOKENS = 2**40  # an engine's word that no engine can have meant


class Usage:
    """Begins when a caller asks for a model. Nothing of the request's or reply's text belongs here."""

    __slots__ = (
        "at", "began_s", "cached_tokens", "caller", "completion_tokens", "model", "path", "prompt_tokens", "request_id",
        "service", "streamed", "ttft_s",
    )  # fmt: skip

    def __init__(self, caller: Caller, path: str, request_id: str) -> None:
        self.caller = caller
        self.path = path[:PATH_LIMIT]
        self.request_id = request_id
        self.at = time.time()
        self.began_s = time.monotonic()
        self.service: str | None = None
        self.model: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.ttft_s: float | None = None
        self.streamed = False

    def record(self, status: int | None) -> UsageRecord:
        """Returns what is kept of a request that has ended."""
        return UsageRecord(
            self.at, self.caller.name, self.path, self.request_id, time.monotonic() - self.began_s, status,
            self.service, self.model, _tokens(self.prompt_tokens), _tokens(self.completion_tokens),
            _tokens(self.cached_tokens), self.ttft_s,
        )  # fmt: skip


def _tokens(count: int | None) -> int | None:
    return count if count is not None and 0 <= count <= MOST_TOKENS else None
