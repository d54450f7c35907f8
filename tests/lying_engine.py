"""An engine that does all that its clients ask, in words of a script, and lies in exactly the ways that it is told.

A server of its own thread on loopback: what a real engine cannot be made to do wrong is done wrong here.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lying_senses import Refusal, embed
from lying_words import CONTEXT_TOKENS, Said, compose

MODEL, KEY = "honest", "sk-honest-key-4711"
TOKEN_S, FAST_S, CROWD_S, SLOW_FIRST_S, LATE_S = 0.012, 0.001, 0.3, 1.5, 0.3
BRISK_S, NOTICED_S = 0.002, 1.5  # so much to a token, and 400 are made before it notices that their client has left
EVERYBODY = 99
SLOW_FROM = 40  # tokens: who asks for fewer does not look at the pace


class Server(ThreadingHTTPServer):
    """The engine: what it counted, and how it lies."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, lies: frozenset[str], model: str = MODEL, port: int = 0, key: str = KEY) -> None:
        super().__init__(("0.0.0.0" if "everywhere" in lies else "127.0.0.1", port), Handler)
        self.lies = lies
        self.model = model
        self.key = key
        others = int("asked-by-others" in lies)
        self.counted = {"request_success_total": 0, "generation_tokens_total": 0, "num_requests_running": others}
        self.is_broken = False
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def count(self, name: str, more: int = 1) -> None:
        """Counts, unless it lies about it."""
        with self.lock:
            if "counts-nothing" not in self.lies:
                self.counted[name] += more + (name != "num_requests_running" and "counts-for-others" in self.lies)

    def begin(self, body: dict[str, Any]) -> None:
        """Is called before a request is answered."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: clients leave, and that is a part of the tests."""


class Handler(BaseHTTPRequestHandler):
    """Answers as an engine does."""

    protocol_version = "HTTP/1.1"
    server: Server
    has_tools = False
    left_s = 0.0  # when it saw that the client had left

    def log_message(self, *words: Any) -> None:
        """Stays quiet."""

    def lies(self, name: str) -> bool:
        """Tells whether it lies in this way."""
        return name in self.server.lies

    def do_GET(self) -> None:
        """Answers what is asked of the engine itself."""
        if self.path == "/metrics":
            lines = (f'vllm:{name}{{engine="0"}} {value}' for name, value in self.server.counted.items())
            self.reply(200, "\n".join(lines).encode(), "text/plain")
        elif self.path == "/health":
            self.reply_json(200, {"status": "ok"})
        elif not self.is_allowed():
            self.refuse(Refusal(401, "no such key"))
        elif self.path == "/props":
            self.reply_json(200, {"total_slots": 1})
        elif self.path == "/v1/models":
            self.reply_json(200, {"object": "list", "data": [{"id": self.server.model, "max_model_len": CONTEXT_TOKENS}]})
        else:
            self.refuse(Refusal(404, "there is no such path"))

    def do_POST(self) -> None:
        """Answers a chat."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        if not self.is_allowed():
            self.refuse(Refusal(401, "no such key"))
            return
        if self.server.is_broken:
            self.refuse(Refusal(503, "its worker is gone"))
            return
        try:
            self.answer_path(json.loads(raw))
        except ValueError:
            self.refuse(Refusal(200 if self.lies("takes-anything") else 400, "that is no JSON"))
        except Refusal as refusal:
            self.refuse(refusal)

    def answer_path(self, body: dict[str, Any]) -> None:
        """Answers what a path is for; raises Refusal."""
        self.server.begin(body)
        lies = self.server.lies
        self.has_tools = bool(body.get("tools"))
        if self.path == "/v1/chat/completions":
            said = compose(body, self.server.model, lies)
            self.answer(body, said)
        elif self.path == "/v1/embeddings":
            self.reply_json(200, embed(body, lies))
        elif self.path == "/v1/responses":
            called = {"type": "function_call", "name": body["tools"][0]["name"], "arguments": "{}"}
            spoken = {"type": "message", "content": [{"text": '<tool_call>\n{"name": "get_weather"}'}]}
            self.reply_json(200, {"output": [spoken if "responses-as-text" in lies else called]})
        elif self.path == "/tokenize":
            self.reply_json(200, {"tokens": [len(body["prompt"])]})
        else:
            raise Refusal(404, "there is no such path")

    def is_allowed(self) -> bool:
        """Tells whether the key is right."""
        given = self.headers["authorization"] or ""
        beside = self.lies("open-beside") and not self.path.startswith("/v1")
        bare = self.lies("takes-bare-keys") and given == self.server.key
        some = self.lies("takes-any-key") and given.startswith("Bearer ")
        listed = self.lies("lists-for-all") and self.path == "/v1/models"
        return self.lies("open") or beside or bare or some or listed or given == f"Bearer {self.server.key}"

    def answer(self, body: dict[str, Any], said: Said) -> None:
        """Counts and answers."""
        most = (
            1
            if self.lies("drops-crowds")
            else 5
            if self.server.lies & {"drops-larger-crowds", "refuses-larger-crowds"}
            else EVERYBODY
        )
        if self.server.counted["num_requests_running"] > most:
            if self.lies("drops-larger-crowds"):
                raise ConnectionAbortedError
            raise Refusal(429, "too many at once")
        self.server.count("num_requests_running")
        try:
            if body.get("stream"):
                self.stream(body, said)
            else:
                # Long enough for a crowd to gather, where it is to be noticed.
                time.sleep(CROWD_S if most < EVERYBODY else FAST_S)
                if not self.is_somebody_elses(body, said):
                    self.server.count("generation_tokens_total", said.tokens)
                    self.server.count("request_success_total")
                self.reply_json(200, said.whole(self.server.model))
        finally:
            time.sleep(LATE_S if self.lies("ends-late") else 0.0)
            self.server.count("num_requests_running", -1)

    def is_somebody_elses(self, body: dict[str, Any], said: Said) -> bool:
        """Tells whether it is a router that has another engine answer this, which counts nothing here."""
        tempted = {
            "fallback-uncounted": bool(body.get("tools")), "fallback-long": said.prompt_tokens > CONTEXT_TOKENS,
            "fallback-parameter": "top_p" in body, "fallback-timeout": "timeout" in body,
            "fallback-error": any("tool_calls" in one for one in body["messages"]),
        }  # fmt: skip
        return any(self.lies(name) and is_tempted for name, is_tempted in tempted.items())

    def refuse(self, refusal: Refusal) -> None:
        """Answers an error."""
        self.reply_json(refusal.status, {"error": {"message": str(refusal), "type": "invalid_request_error"}})

    def reply_json(self, status: int, value: object) -> None:
        """Answers JSON."""
        self.reply(status, json.dumps(value).encode(), "application/json")

    def reply(self, status: int, raw: bytes, kind: str) -> None:
        """Answers anything."""
        self.send_response(status)
        self.send_header("content-type", kind)
        if self.lies("fallback-always") or (self.lies("fallback-header") and self.has_tools):
            self.send_header("x-litellm-attempted-fallbacks", "1")
            self.send_header("x-litellm-model-api-base", "http://other:1")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def stream(self, body: dict[str, Any], said: Said) -> None:
        """Answers piece by piece, until the client leaves."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        kept: list[bytes] = []
        time.sleep(SLOW_FIRST_S if self.lies("first-is-slow") else 0.0)
        for number, event in enumerate(said.events(self.server.model)):
            raw = event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
            kept.append(raw)
            if not self.lies("buffers") and not self.send_on(kept):
                return
            if not (self.left_s and self.lies("works-on-quickly")):
                time.sleep(self.pace_s(body))
            self.server.count("generation_tokens_total", int(0 < number <= said.tokens))
        self.server.count("request_success_total")
        if self.send_on([*kept, b""]):
            self.wfile.write(b"0\r\n\r\n")

    def pace_s(self, body: dict[str, Any]) -> float:
        """How long a token takes."""
        if self.server.lies & {"works-on-fast", "notices-late"}:
            return BRISK_S
        return TOKEN_S if body.get("max_tokens", 0) >= SLOW_FROM and not self.lies("first-is-slow") else FAST_S

    def send_on(self, kept: list[bytes]) -> bool:
        """Sends what was kept; returns False where the client has left, unless it lies about having noticed."""
        data = b"".join(kept)
        kept.clear()
        with contextlib.suppress(OSError):
            if data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            return True
        self.left_s = self.left_s or time.monotonic()
        self.server.is_broken = self.lies("breaks-when-left")
        has_noticed = not self.lies("notices-late") or time.monotonic() - self.left_s > NOTICED_S
        return bool(self.server.lies & {"works-on", "works-on-fast", "works-on-quickly"}) or not has_noticed


@contextlib.contextmanager
def lying_engine(*lies: str, model: str = MODEL) -> Iterator[Server]:
    """Runs an engine that lies in these ways; in none it is honest."""
    with Server(frozenset(lies), model) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
