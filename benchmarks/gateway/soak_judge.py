"""Judges what came back in a soak: whole, refused or broken off honestly, or a breach of what the gateway promises."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from typing import NamedTuple

from benchmarks.gateway.raw_client import SEQUENCE, Reply

SAYS_MODEL = re.compile(rb'"model":"([^"]*)"')
SAYS_ENGINE = re.compile(rb'"id":"chatcmpl-([^"]*)"')
CHECKSUM = b'data: {"choices":[],"crc32":"'
KEPT_BREACHES = 20


class Asked(NamedTuple):
    """One request: the model and how many chunks were asked for; `may_fail` while services were being switched."""

    model: str
    chunks: int
    stream: bool
    is_known: bool
    may_fail: bool


class Tally:
    """How often each thing happened, and the first breaches in words."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.breaches: list[str] = []
        self.breach_count = self.chunks = self.wrong_answers = self.lost_bytes = 0

    def breach(self, what: str) -> None:
        """Notes a broken promise."""
        self.breach_count += 1
        if len(self.breaches) < KEPT_BREACHES:
            self.breaches.append(what)

    def take(self, asked: Asked, reply: Reply) -> None:
        """Judges one reply that was read to its end."""
        self.chunks += reply.chunks
        if not is_of(reply, asked.model):
            self.wrong_answers += 1
            self.breach(f"{asked.model} was asked, and another one's words came: {reply.body[:300]!r}")
        if not is_in_order(reply):
            self.lost_bytes += 1
            self.breach(f"chunks were lost or changed places after {reply.chunks} of {asked.chunks}")
        self._judge(asked, reply)

    def _judge(self, asked: Asked, reply: Reply) -> None:
        if reply.status == 200 and reply.end == "complete":
            self._judge_answer(asked, reply)
        elif reply.status in (404, 503) and reply.end == "complete":
            self._judge_refusal(asked, reply)
        else:
            self._failed(asked, f"{reply.status or 'no status'}, {reply.end}", reply)

    def _judge_answer(self, asked: Asked, reply: Reply) -> None:
        if reply.error_event:
            self._failed(asked, "stream broken off with an error event", reply)
        elif asked.stream and not reply.is_done:
            self.breach(f"a stream ended cleanly without [DONE] after {reply.chunks} of {asked.chunks} chunks")
        elif not is_whole(asked, reply):
            self.lost_bytes += 1
            self.breach(f"bytes were lost or changed: {reply.chunks} of {asked.chunks} chunks came")
        else:
            self.seen["stream, whole" if asked.stream else "reply, whole"] += 1

    def _judge_refusal(self, asked: Asked, reply: Reply) -> None:
        code = b"model_not_found" if reply.status == 404 else b"service_"
        if (reply.status == 404) is asked.is_known or code not in reply.body:
            self.breach(f"{asked.model} was refused with {reply.status}: {reply.body[:300]!r}")
        self.seen[f"refused with {reply.status}"] += 1

    def _failed(self, asked: Asked, how: str, reply: Reply) -> None:
        self.seen[how] += 1
        if not asked.may_fail:
            self.breach(f"{how}, and nothing was being switched: {reply.body[-300:]!r}")


def is_of(reply: Reply, model: str) -> bool:
    """Tells whether all that the reply says of its model and engine is the model that was asked for."""
    said = {reply.headers.get("x-stoker-model", model).encode()} if reply.status == 200 else set()
    said |= set(SAYS_MODEL.findall(reply.body)) | set(SAYS_ENGINE.findall(reply.body))
    return said <= {model.encode()} and (reply.status != 200 or "x-stoker-model" in reply.headers)


def is_in_order(reply: Reply) -> bool:
    """Tells whether the chunks that came are the first ones, each once."""
    return [int(number) for number in SEQUENCE.findall(reply.body)] == list(range(reply.chunks))


def is_whole(asked: Asked, reply: Reply) -> bool:
    """Tells whether all chunks came, and of a stream every byte as the engine summed them up."""
    if not asked.stream:
        return reply.chunks == 1
    content, mark, told = reply.body.partition(CHECKSUM)
    return reply.chunks == asked.chunks and bool(mark) and int(told[:8], 16) == zlib.crc32(content)
