"""What a request asks of the mock engine, in the words of a message's text: all that every gateway forwards untouched.

    "mock ttft=50 itl=20 tokens=64"

ttft, itl     milliseconds to the first token, and between tokens (itl=0: flat out, as the reader reads)
steps         all that ask so write at once, as an engine does that makes a token for all of them in one step
tokens, pad   content chunks of the reply; more bytes in each chunk
status        answer with this HTTP status and an error in OpenAI's shape
die           break the connection off after so many chunks (0: before any byte)
how           "rst" (a reset), "fin" (an orderly close without the final chunk), or "hang" (nothing more comes)
only          `status` and `die` mean the engine of this name alone
tag           keep a record of this request, to be read at /mock/events?tag=
sum           end the stream with an event that has the CRC-32 of all its bytes before
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

DIRECTIVE = re.compile(rb"mock((?: [a-z]+=[\w.-]+)+)")
NEVER = -1


class Order(NamedTuple):
    """One request's wishes; `die_after` is NEVER for a reply that is whole."""

    stream: bool
    usage: bool
    ttft_s: float
    itl_s: float
    steps: bool
    tokens: int
    pad: bytes
    status: int | None
    die_after: int
    how: str
    tag: str | None
    summed: bool


def read_order(body: bytes, engine: str) -> Order:
    """Reads a request; raises ValueError where the body is no JSON object."""
    asked = json.loads(body)
    if not isinstance(asked, dict):
        raise ValueError("not an object")  # noqa: TRY004 - the bytes were right, what they say is not
    found = DIRECTIVE.search(body)
    words = dict(pair.split("=", 1) for pair in found[1].decode().split()) if found else {}
    usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    return _order(words, bool(asked.get("stream")), usage, words.get("only", engine) == engine)


def _order(words: Mapping[str, str], stream: bool, usage: bool, is_meant: bool) -> Order:
    return Order(
        stream=stream,
        usage=usage,
        ttft_s=float(words.get("ttft", 10)) / 1000,
        itl_s=float(words.get("itl", 10)) / 1000,
        steps="steps" in words,
        tokens=int(words.get("tokens", 16)),
        pad=b"x" * int(words.get("pad", 0)),
        status=int(words["status"]) if is_meant and "status" in words else None,
        die_after=int(words.get("die", NEVER)) if is_meant else NEVER,
        how=words.get("how", "rst"),
        tag=words.get("tag"),
        summed="sum" in words,
    )
