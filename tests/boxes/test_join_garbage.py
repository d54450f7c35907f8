"""What strangers send to the port of links is answered, counted, and holds no connection."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from door_stage import Engine, Stage, act, json_answer
from far_stage import FarStage

DEEP = b"[" * 5_000


@pytest.mark.parametrize(
    "body", [b'{"secret": "\xff", "name": "a"}', b'{"secret": ' + DEEP, b'{"name": 7}', b"\0"],
    ids=["no text", "deep", "no secret", "no JSON"],
)  # fmt: skip
def test_garbage_is_refused_at_once(body: bytes, tmp_path: Path) -> None:
    async def story(stage: Stage) -> None:
        assert isinstance(stage, FarStage)
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        host, port, _ = stage.link
        reader, writer = await asyncio.open_connection(host, port, ssl=trusting)
        head = b"POST /join HTTP/1.1\r\nhost: far\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        assert b"invalid_join" in await reader.readuntil(b"invalid_join")
        writer.close()

    act(FarStage(Engine(json_answer(b"{}")), tmp_path), story)
