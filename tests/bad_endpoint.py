"""Servers that do to a client what real ones now and then do: hang, drip, close, babble."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b'data: {"id":"a","model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
LIMIT_S = 20.0


def chunk(data: bytes) -> bytes:
    """Returns data as one chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(body: bytes, head: bytes = JSON_HEAD) -> bytes:
    """Returns a whole reply."""
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


Play = Callable[[socket.socket, threading.Event], None]


def says(*pieces: bytes) -> Play:
    """Returns a server that says the same to everybody, and closes."""

    def play(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"".join(pieces))

    return play


def hangs(connection: socket.socket, over: threading.Event) -> None:
    """Answers nothing, and keeps the connection."""
    over.wait(LIMIT_S)


def hangs_after_head(connection: socket.socket, over: threading.Event) -> None:
    """Begins to answer, and says no more."""
    connection.sendall(STREAM_HEAD + chunk(EVENT))
    over.wait(LIMIT_S)


def drips(connection: socket.socket, over: threading.Event) -> None:
    """Answers letter by letter, for ever."""
    connection.sendall(JSON_HEAD + b"\r\n")
    while not over.wait(0.05):
        connection.sendall(b" ")


def floods(connection: socket.socket, over: threading.Event) -> None:
    """Answers one line without an end."""
    connection.sendall(JSON_HEAD + b"\r\n{")
    while not over.is_set():
        connection.sendall(b"a" * 65536)


@contextlib.contextmanager
def bad_endpoint(play: Play, certificate: Path | None = None) -> Iterator[str]:
    """Runs such a server; yields its address."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.02)
        thread = threading.Thread(target=_serve, args=(server, play, over, certificate))
        thread.start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def _serve(server: socket.socket, play: Play, over: threading.Event, certificate: Path | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
    if context and certificate:
        context.load_cert_chain(certificate)
    with contextlib.ExitStack() as threads:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                thread = threading.Thread(target=_answer, args=(connection, play, over, context))
                thread.start()
                threads.callback(thread.join)


def _answer(connection: socket.socket, play: Play, over: threading.Event, context: ssl.SSLContext | None) -> None:
    connection.settimeout(LIMIT_S)
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        spoken = stack.enter_context(context.wrap_socket(connection, server_side=True) if context else connection)
        _read_request(spoken)
        play(spoken, over)


def _read_request(connection: socket.socket) -> None:
    """Reads all of it: what is left unread makes the kernel reset the connection instead of closing it."""
    head, body = b"", b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(65536) or b"\r\n\r\n"
    head, _, body = head.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
    while len(body) < length and (more := connection.recv(65536)):
        body += more


def make_certificate(folder: Path) -> Path:
    """Makes a certificate for 127.0.0.1 that nobody else has signed, with its key in the same file."""
    file = folder / "self-signed.pem"
    words = (
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=spark",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(file), "-out", str(folder / "certificate.pem"),
    )  # fmt: skip
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    file.write_text(file.read_text() + (folder / "certificate.pem").read_text())
    return file
