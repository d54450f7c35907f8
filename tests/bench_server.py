"""A server in a thread that answers chats as a list of plays says, one after the other, and everything else with 404.

For what no engine does on purpose: fails one of many, breaks off, hangs, lies, refuses.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bad_endpoint import STREAM_HEAD, chunk

LIMIT_S = 20.0
Send = Callable[[bytes], None]
Play = Callable[[dict[str, Any], Send, threading.Event], None]


def event(text: str, **more: Any) -> bytes:
    """Returns a chunk with text."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": more.pop("finish", None)}
    return chunk(b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n")


def ending(tokens: int | None, prompt: int = 64) -> bytes:
    """Returns the end of a stream, with usage where tokens are told."""
    usage = {"usage": {"prompt_tokens": prompt, "completion_tokens": tokens}} if tokens is not None else {}
    return event("", finish="length", **usage) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def well(body: dict[str, Any], send: Send, over: threading.Event) -> None:
    """Answers what was asked, whole or as a stream."""
    if not body.get("stream"):
        send(reply(200, {"choices": [{"message": {"content": "a"}}], "usage": {"prompt_tokens": 64}}))
        return
    count = int(body["max_tokens"])
    send(STREAM_HEAD + b"".join(event("a") for _ in range(count)) + ending(count))


def reply(status: int, value: Any, more: str = "") -> bytes:
    """Returns a whole reply."""
    data = json.dumps(value).encode()
    return f"HTTP/1.1 {status} X\r\n{more}content-length: {len(data)}\r\n\r\n".encode() + data


def refuses(status: int, words: str, more: str = "") -> Play:
    """Returns a play that answers an error."""
    return lambda body, send, over: send(reply(status, {"error": {"message": words}}, more))


def sends(*pieces: bytes) -> Play:
    """Returns a play that sends pieces and closes."""

    def play(body: dict[str, Any], send: Send, over: threading.Event) -> None:
        send(b"".join(pieces))
        raise ConnectionAbortedError

    return play


def hangs(body: dict[str, Any], send: Send, over: threading.Event) -> None:
    """Begins to answer, and says no more."""
    send(STREAM_HEAD + event("a"))
    over.wait(LIMIT_S)


class Server:
    """Answers streamed chats of `tokens` new ones by the plays, then well; smaller ones, which only look, always well.

    `whole` answers what is no stream, and `pages` are what else it shows, by path.
    """

    def __init__(self, plays: Sequence[Play], tokens: int, always: Play) -> None:
        self.plays, self.tokens, self.always = list(plays), tokens, always
        self.bodies: list[dict[str, Any]] = []
        self.whole: Play = well
        self.pages: dict[str, Callable[[], bytes]] = {}
        self.lock, self.over = threading.Lock(), threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.socket.settimeout(0.02)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def serve(self) -> None:
        """Accepts until it is over."""
        with contextlib.ExitStack() as threads:
            while not self.over.is_set():
                with contextlib.suppress(OSError):  # nobody came for a while, or a play has closed it
                    connection, _ = self.socket.accept()
                    thread = threading.Thread(target=self.talk, args=(connection,))
                    thread.start()
                    threads.callback(thread.join)

    def talk(self, connection: socket.socket) -> None:
        """Answers request after request on one connection."""
        connection.settimeout(0.05)
        with connection, contextlib.suppress(OSError):
            while (request := self.read(connection)) is not None:
                path, body = request
                if not path.endswith("/chat/completions"):
                    connection.sendall(self.pages.get(path, lambda: reply(404, {}))())
                    continue
                self.choose(body)(body, connection.sendall, self.over)

    def choose(self, body: dict[str, Any]) -> Play:
        """Returns how to answer this request."""
        if not body.get("stream") or body["max_tokens"] != self.tokens:
            usual = well if body.get("stream") else self.whole
            return usual if self.always is not REFUSES_ALL else REFUSES_ALL
        with self.lock:
            self.bodies.append(body)
            return self.plays.pop(0) if self.plays else self.always

    def read(self, connection: socket.socket) -> tuple[str, dict[str, Any]] | None:
        """Returns the next request; None where the client has left, or it is over."""
        data = b""
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < _length(data):
            try:
                more = connection.recv(65536)
            except TimeoutError:
                if self.over.is_set():
                    return None
                continue
            if not more:
                return None
            data += more
        return data.split(b" ")[1].decode(), json.loads(data.partition(b"\r\n\r\n")[2] or b"{}")


REFUSES_ALL = refuses(401, "no such key")


def _length(data: bytes) -> int:
    return int(data.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)


@contextlib.contextmanager
def bench_server(*plays: Play, tokens: int = 8, always: Play = well) -> Iterator[Server]:
    """Runs such a server."""
    server = Server(plays, tokens, always)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        thread.join()
        server.socket.close()
