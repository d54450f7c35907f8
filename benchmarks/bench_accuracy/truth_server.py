"""A server that answers chats on an exact schedule, and knows when each write really happened.

    python -m benchmarks.bench_accuracy.truth_server --port 18080

One token is one byte of text, in prompts and in answers, so that all counts agree. `POST /truth/schedule` changes the
schedule (see `Schedule`) and forgets the log, `GET /truth/requests` has the log. It runs on select(2), whose timeouts are
exact to microseconds where those of epoll are whole milliseconds; a server that is late writes down how late, so that no
tool is blamed for it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import selectors
from typing import Any

import msgspec

from benchmarks.gateway.mock_http import HttpConnection

LETTERS = "a clerk counts what came in and what was said about it "
MODEL = "truth/bytes"
CONTEXT_TOKENS = 131072
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Schedule(msgspec.Struct, forbid_unknown_fields=True):
    """When an answer's parts leave: the first chunk `ttft_ms` after the request, one each `step_ms` after that.

    `burst` tokens a chunk, the first has `first_burst`; `role_ms` is when an empty role chunk leaves (None: with the first);
    `field` is where the text stands; `usage` False tells no counts, `ids` False no token ids; `coalesce` chunks go out in
    one write; `tail_ms` lie between the last token and the end; `drafts` draft tokens are proposed each step.
    """

    ttft_ms: float = 200.0
    step_ms: float = 20.0
    burst: int = 1
    first_burst: int = 1
    role_ms: float | None = None
    field: str = "content"
    usage: bool = True
    ids: bool = True
    coalesce: int = 1
    tail_ms: float = 0.0
    drafts: int = 0


class Logged(msgspec.Struct):
    """What really happened to a request; times are this process's monotonic clock."""

    prompt_tokens: int
    received_s: float
    tokens: int = 0
    chunks: int = 0
    first_tokens: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    ended_s: float = 0.0
    late_s: float = 0.0


class Book:
    """The schedule in force, the log, and the counters of speculation."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.log: list[Logged] = []
        self.drafts = self.drafted = self.accepted = self.generated = self.running = 0

    def metrics(self) -> str:
        """Returns the counters as vLLM names them."""
        rows = {
            "generation_tokens_total": self.generated, "request_success_total": len(self.log),
            "num_requests_running": self.running, "spec_decode_num_drafts_total": self.drafts,
            "spec_decode_num_draft_tokens_total": self.drafted, "spec_decode_num_accepted_tokens_total": self.accepted,
        }  # fmt: skip
        return "".join(f'vllm:{name}{{engine="0"}} {value}\n' for name, value in rows.items())


class Chat(HttpConnection):
    """One connection."""

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._book = book

    def answer(self, path: str, query: str, body: bytes) -> None:
        """Answers a request."""
        if path == "/v1/chat/completions":
            self._chat(json.loads(body))
        elif path == "/v1/models":
            self.reply(200, {"object": "list", "data": [{"id": MODEL, "max_model_len": CONTEXT_TOKENS}]})
        elif path == "/metrics":
            text = self._book.metrics().encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        elif path == "/truth/schedule":
            self._book.schedule, self._book.log = msgspec.json.decode(body or b"{}", type=Schedule), []
            self.reply(200, {})
        elif path == "/truth/requests":
            self.reply(200, msgspec.to_builtins(self._book.log))
        else:
            self.reply(200 if path in ("/", "/health", "/ping", "/version") else 404, {})

    def _chat(self, body: dict[str, Any]) -> None:
        now_s = self._loop.time()
        self._plan, self._asked = self._book.schedule, body
        self._total = int(body.get("max_completion_tokens") or body.get("max_tokens") or 128)
        said = "".join(_text(message.get("content")) for message in body["messages"])
        self._entry = Logged(len(said.encode()), now_s)
        self._sent, self._pending = 0, b""
        self._due_s = now_s + self._plan.ttft_ms / 1e3
        self._book.running += 1
        if not body.get("stream"):
            self._loop.call_at(self._due_s, self._answer_whole)
            return
        self.transport.write(HEAD)
        if self._plan.role_ms is not None:
            self._loop.call_at(now_s + self._plan.role_ms / 1e3, self._say_role)
        self._loop.call_at(self._due_s, self._step)

    def _answer_whole(self) -> None:
        self._sent = self._total
        self._book.running -= 1
        message = {"role": "assistant", "content": "Paris " + LETTERS[: max(0, self._total - 6)]}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        self.reply(
            200, {"id": "x", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": self._usage()}
        )

    def _usage(self) -> dict[str, int]:
        prompt = self._entry.prompt_tokens
        return {"prompt_tokens": prompt, "completion_tokens": self._sent, "total_tokens": prompt + self._sent}

    def _event(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        event = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": choices}
        return _framed(json.dumps(event | ({"usage": usage} if usage else {}), separators=(",", ":")).encode())

    def _say_role(self) -> None:
        delta = {"role": "assistant", "content": ""}
        self.transport.write(self._event([{"index": 0, "delta": delta, "finish_reason": None}]))

    def _step(self) -> None:
        if self.transport.is_closing():
            self._book.running -= 1
            return
        plan, entry = self._plan, self._entry
        is_first = entry.chunks == 0
        if is_first and plan.role_ms is None:
            self._say_role()
        size = min(plan.first_burst if is_first else plan.burst, self._total - self._sent)
        self._count(size, is_first=is_first)
        self._pending += self._chunk(size)
        entry.chunks += 1
        is_last = self._sent >= self._total
        if is_last or entry.chunks % plan.coalesce == 0:
            self._write(entry)
        if is_last:
            self._loop.call_at(self._due_s + plan.tail_ms / 1e3, self._finish) if plan.tail_ms else self._finish()
            return
        self._due_s += plan.step_ms / 1e3
        self._loop.call_at(self._due_s, self._step)

    def _chunk(self, size: int) -> bytes:
        text = "".join(LETTERS[(self._sent + place) % len(LETTERS)] for place in range(size))
        self._sent += size
        choice: dict[str, Any] = {"index": 0, "delta": {self._plan.field: text}, "finish_reason": None}
        if self._plan.ids and self._asked.get("return_token_ids"):
            choice["token_ids"] = [ord(letter) for letter in text]
        is_running = (self._asked.get("stream_options") or {}).get("continuous_usage_stats") and self._plan.usage
        return self._event([choice], self._usage() if is_running else None)

    def _write(self, entry: Logged) -> None:
        entry.last_s = self._loop.time()  # not after the call, which wakes the reader: that takes up to 0.1 ms
        self.transport.write(self._pending)
        self._pending = b""
        entry.late_s = max(entry.late_s, entry.last_s - self._due_s)
        if not entry.first_s:
            entry.first_s, entry.first_tokens = entry.last_s, self._sent

    def _count(self, size: int, *, is_first: bool) -> None:
        book, drafts = self._book, self._plan.drafts
        book.generated += size
        if drafts and not is_first:
            book.drafts, book.drafted = book.drafts + 1, book.drafted + drafts
            book.accepted += min(size - 1, drafts)

    def _finish(self) -> None:
        end = self._event([{"index": 0, "delta": {}, "finish_reason": "length"}])
        if self._plan.usage and (self._asked.get("stream_options") or {}).get("include_usage"):
            end += self._event([], self._usage())
        self.transport.write(end + _framed(b"[DONE]") + b"0\r\n\r\n")
        self._entry.tokens, self._entry.ended_s = self._sent, self._loop.time()
        self._book.log.append(self._entry)
        self._book.running -= 1
        self.close_if_asked()


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


def _framed(data: bytes) -> bytes:
    event = b"data: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


async def serve(port: int) -> None:
    """Serves until it is told to stop; says on standard output where."""
    book = Book()
    server = await asyncio.get_running_loop().create_server(lambda: Chat(book), "127.0.0.1", port, backlog=512)
    gc.freeze()
    gc.disable()
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Serves on a port, 0 for any that is free."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=0)
    port = parser.parse_args().port
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(serve(port))


if __name__ == "__main__":
    main()
