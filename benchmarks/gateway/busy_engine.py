"""An engine whose own HTTP server is what holds it up, as vLLM's and SGLang's are with many streams: uvicorn on uvloop.

    python -m benchmarks.gateway.busy_engine --port 9001 [--model mock] [--core 0]

It makes a token for every stream each `--step-ms`; the server spends `--request-ms` on a request and `--chunk-us` on a
chunk, so 128 streams take nearly four times as long as the engine alone would. vLLM 0.26 and SGLang 0.5.16 took 150 to
170 us for a chunk on an H100's host (docs/measured/gpu.md); it is twice as dear here, so that half as many streams show it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from typing import Any

import uvicorn

TOKENS, WORD = 16, b"word "


class BusyEngine:
    """An ASGI application; `live` are the streams under way, each with the tokens that wait for it."""

    def __init__(self, model: str, request_s: float, chunk_s: float, step_s: float) -> None:
        self._model = model
        self._request_s, self._chunk_s, self._step_s = request_s, chunk_s, step_s
        self._live: set[asyncio.Queue[None]] = set()
        self._stepping: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        if scope["path"] != "/v1/chat/completions":
            await reply(send, {"object": "list", "data": [{"id": self._model, "object": "model"}]})
            return
        content = json.loads(await read_body(receive))
        spend(self._request_s)
        if content.get("stream"):
            await self._stream(send, content.get("max_tokens") or content.get("max_completion_tokens") or TOKENS)
        else:
            message = {"role": "assistant", "content": "mock"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            await reply(
                send, {"id": "x", "object": "chat.completion", "model": self._model, "choices": [choice], "usage": usage}
            )

    async def _stream(self, send: Any, tokens: int) -> None:
        self._stepping = self._stepping or asyncio.ensure_future(self._step())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        mine: asyncio.Queue[None] = asyncio.Queue()
        self._live.add(mine)
        try:
            for _ in range(tokens):
                await mine.get()
                spend(self._chunk_s)
                await send({"type": "http.response.body", "body": self._chunk(), "more_body": True})
        finally:
            self._live.discard(mine)
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _step(self) -> None:
        """Makes a token for each stream at its time, or at once where the server was too busy for that."""
        due_s = time.monotonic()
        while True:
            due_s = max(due_s + self._step_s, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
            for stream in self._live:
                stream.put_nowait(None)

    def _chunk(self) -> bytes:
        choice = {"index": 0, "delta": {"content": WORD.decode()}, "finish_reason": None}
        event = {"id": "x", "object": "chat.completion.chunk", "model": self._model, "choices": [choice]}
        return b"data: " + json.dumps(event).encode() + b"\n\n"


def spend(seconds: float) -> None:
    """Keeps the processor busy."""
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        pass


async def read_body(receive: Any) -> bytes:
    """Returns a request's whole body."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def reply(send: Any, content: object) -> None:
    """Sends a whole reply as JSON."""
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


def main() -> None:
    """Reads the options and serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", help="is not used")
    parser.add_argument("--model", default="mock")
    parser.add_argument("--core", type=int, help="the processor core that it keeps to")
    parser.add_argument("--anonymous", action="store_true", help="do not say that this is uvicorn")
    parser.add_argument("--request-ms", type=float, default=2.0)
    parser.add_argument("--chunk-us", type=float, default=300.0)
    parser.add_argument("--step-ms", type=float, default=10.0)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    app = BusyEngine(options.model, options.request_ms / 1e3, options.chunk_us / 1e6, options.step_ms / 1e3)
    uvicorn.run(
        app, port=options.port, loop="uvloop", http="httptools", lifespan="off", log_level="warning", access_log=False,
        server_header=not options.anonymous,
    )  # fmt: skip


if __name__ == "__main__":
    main()
