"""What the engine of the tests makes of a conversation: its text, and the colours of its images."""

from __future__ import annotations

import base64
import zlib
from typing import Any

SIDE = 64
NAMES = ("red", "green", "blue")


class Refusal(Exception):
    """The engine refuses a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def text_of(messages: list[dict[str, Any]]) -> str:
    """Returns all text of a conversation."""
    return " ".join(_text(one.get("content")) for one in messages)


def _text(content: Any) -> str:
    parts = content if isinstance(content, list) else [{"text": content or ""}]
    return " ".join(part.get("text", "") for part in parts)


def colours_of(messages: list[dict[str, Any]]) -> str:
    """Returns the strongest colour of the first point of each image."""
    parts = [part for one in messages if isinstance(one.get("content"), list) for part in one["content"]]
    urls = [part["image_url"]["url"] for part in parts if "image_url" in part]
    return " ".join(_colour(base64.b64decode(url.partition(",")[2])) for url in urls)


def _colour(png: bytes) -> str:
    start = png.index(b"IDAT")
    line = zlib.decompress(png[start + 4 : start + 4 + int.from_bytes(png[start - 4 : start])])
    point = line[1:4]
    return NAMES[point.index(max(point))]


def embed(body: dict[str, Any], lies: frozenset[str]) -> dict[str, Any]:
    """Returns a vector for each text: how often it holds each letter."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    away = len(texts) if "unstable-vectors" in lies else 0
    zero = "zero-vectors" in lies
    vectors = [
        [0.0 if zero else text.count(chr(97 + letter)) + 9.0 * away * (letter == 25) for letter in range(26)]
        for text in texts
    ]
    return {"data": [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]}
