"""A scripted engine, a process of its own, for faults that a real one cannot be made to show.

It is started with llama-server's words and reads what to do from the JSON file in `FAKE_ENGINE` beside it (see `Script`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Script:
    """What the fake engine does.

    gate: a file that must exist before it is healthy.
    dies: "loading", "proving" or "streaming" (after two tokens, once `stream_gate` exists).
    says_model: the model it claims to be.
    status, headers: what it answers to a chat; with headers only to the message "hi".
    tokens: how many it gives; it falls silent after `hangs_after`.
    orphan: it leaves a child in a session of its own.
    aborts: it never answers a request that is not streamed, and writes "begun", then "left" to this file.
    event: it answers with this one event.
    prints: a line it prints first.
    needs: a variable; as long as it is not set, it prints and dies as it is told to, and else it does neither.
    keeps: a file to which it writes the last request's body as it came; it answers 404 where that names another model.
    counts: its answers say how many tokens they are, and its metrics count so many of each.
    refuses: it answers 500 to all but the proof.
    metrics: a file with what it says at /metrics; as long as there is none it says nothing at all.
    echoes: its tokens say again what the request's last message says, so that no answer is taken for another.
    thinks: its tokens are thoughts, under the name that vLLM gives them.
    alone: a file that it locks as long as it lives; one that finds it locked says so in the file beside it, with `.two`.
    """

    gate: str | None = None
    dies: str | None = None
    ignores_term: bool = False
    says_model: str | None = None
    status: int = 200
    headers: dict[str, str] | None = None
    tokens: int = 3
    orphan: bool = False
    stream_gate: str | None = None
    hangs_after: int | None = None
    aborts: str | None = None
    event: object = None
    prints: str | None = None
    needs: str | None = None
    keeps: str | None = None
    alone: str | None = None
    counts: int | None = None
    metrics: str | None = None
    refuses: bool = False
    echoes: bool = False
    thinks: bool = False


def wait_for_file(path: str) -> None:
    """Returns once the file exists."""
    while not Path(path).exists():
        time.sleep(0.005)


class Handler(BaseHTTPRequestHandler):
    """Answers health, chat and completions as the script says."""

    protocol_version = "HTTP/1.1"
    script: Script
    model: str
    counted = 0

    def log_message(self, *words: Any) -> None:
        """Stays quiet."""

    def do_GET(self) -> None:
        """Answers the health question, and what it has generated so far."""
        if self.path == "/metrics" and self.script.counts is not None:
            self._reply_text(f"llamacpp:tokens_predicted_total {Handler.counted}\n")
            return
        if self.path == "/metrics" and self.script.metrics is not None:
            wait_for_file(self.script.metrics)
            self._reply_text(Path(self.script.metrics).read_text())
            return
        waits = self.script.gate is not None and not Path(self.script.gate).exists()
        self._reply(503 if waits else 200, {"status": "loading" if waits else "ok"})

    def do_POST(self) -> None:
        """Answers a chat."""
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        is_proof = body["messages"][0]["content"] == "Say hello."
        if is_proof and self.script.dies == "proving":
            os._exit(9)
        if self.script.keeps:
            Path(self.script.keeps).write_bytes(raw)
        if self.script.keeps and body["model"] != self.model:
            self._reply(404, {"error": {"message": f"there is no {body['model']}", "type": "engine"}})
        elif not body.get("stream") and self.script.aborts:
            self._wait_until_left(self.script.aborts)
        elif self.script.refuses and not is_proof:
            self._reply(500, {"error": {"message": "it is lost", "type": "engine"}})
        elif self.script.status != 200 and (self.script.headers is None or body["messages"][0]["content"] == "hi"):
            self._reply(self.script.status, {"error": {"message": "the engine refuses", "type": "engine"}})
        else:
            self._stream(body, is_proof)

    def _reply_text(self, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/plain")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def _reply(self, status: int, value: object) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        for name, text in (self.script.headers or {}).items():
            self.send_header(name, text)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _wait_until_left(self, file: str) -> None:
        Path(file).write_text("begun\n")
        if self.connection.recv(1) == b"":
            Path(file).write_text("left\n")

    def _stream(self, body: dict[str, Any], is_proof: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        word = body["messages"][-1]["content"] if self.script.echoes else "token"
        with contextlib.suppress(OSError):
            for number in range(self.script.tokens):
                self._before_token(number, is_proof)
                delta = {"reasoning" if self.script.thinks else "content": f"{word}{number} "}
                self._chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            if self.script.counts is not None:
                Handler.counted += self.script.counts
                self._chunk({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": self.script.tokens}})
            self._write(b"data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")

    def _before_token(self, number: int, is_proof: bool) -> None:
        if is_proof:
            return
        if number == 2 and self.script.stream_gate:
            wait_for_file(self.script.stream_gate)
        if number == 2 and self.script.dies == "streaming":
            os._exit(9)
        if number == self.script.hangs_after:
            threading.Event().wait()

    def _chunk(self, event: dict[str, Any]) -> None:
        if self.script.event is not None:
            self._write(b"data: " + json.dumps(self.script.event).encode() + b"\n\n")
            return
        full = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": self.model, **event}
        self._write(b"data: " + json.dumps(full).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def be_alone(file: str) -> None:
    """Takes the lock, which the kernel gives back when this process is dead."""
    held = os.open(file, os.O_CREAT | os.O_RDWR)  # never closed: a child would have to be given it
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        Path(f"{file}.two").write_text(f"{sys.argv[0]} began while another one lived\n")


def main(script_file: str, words: list[str]) -> None:
    """Serves until it is told to stop."""
    script = Script(**json.loads(Path(script_file).read_text()))
    if words == ["--version"]:
        print("version: 1 (fake)")
        return
    options = dict(pairwise(words))
    if script.needs and script.needs in os.environ:
        script = replace(script, dies=None, prints=None)
    if script.prints:
        print(script.prints, flush=True)
    if script.alone:
        be_alone(script.alone)
    if script.dies == "loading":
        sys.exit(7)
    if script.ignores_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if script.orphan:
        subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    Handler.script = script
    Handler.model = script.says_model or options["--alias"]
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 64  # of five, the kernel lets the sixth that comes at once wait for a second
    ThreadingHTTPServer(("127.0.0.1", int(options["--port"])), Handler).serve_forever()


def write_fake_engine(folder: Path, script: Script) -> Path:
    """Writes a program that behaves as scripted, to be named as a service's `server`."""
    folder.mkdir(parents=True, exist_ok=True)
    script_file, program = folder / "script.json", folder / "fake-llama-server"
    script_file.write_text(json.dumps(script.__dict__))
    return write_program(program, "fake_engine", script_file)


def write_program(
    program: Path, module: str, script_file: Path, python: str = sys.executable, beside: Path | None = None
) -> Path:
    """Writes a program that calls a module's `main` with a file that says what to do, and its own words.

    The module lies here, or in the folder `beside`.
    """
    folders = [str(folder) for folder in (beside, Path(__file__).parent) if folder is not None]
    program.write_text(
        f"#!{python}\nimport sys\nsys.path[:0] = {folders!r}\n"
        f"import {module}\n{module}.main({str(script_file)!r}, sys.argv[1:])\n"
    )
    program.chmod(0o755)
    return program
