"""A small hub on loopback that speaks the real one's API, redirects large files to another host, and fails on request."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".gguf", ".bin")
BLOCK = 16 * 1024
LIMIT_S = 60.0


@dataclass
class Fault:
    """What goes wrong with the next requests whose path holds `where`; all of it by default only once.

    `status` answers so; `cut_at` closes the connection after so many bytes of the body; `hold_at` stops sending there until
    `release` is set; `content` is sent instead of the file's; `no_range` ignores ranges; `at_hold` is called when it holds.
    """

    where: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    hold_at: int | None = None
    content: bytes | None = None
    no_range: bool = False
    release: threading.Event = field(default_factory=threading.Event)
    struck: threading.Event = field(default_factory=threading.Event)
    at_hold: Callable[[], None] = lambda: None


@dataclass
class Asked:
    """One request."""

    server: str
    method: str
    path: str
    range: str | None
    token: str | None


@dataclass
class Repository:
    """Files by commit, branches, and who may read it."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    token: str | None = None
    is_gated: bool = False
    lies: dict[str, dict[str, Any]] = field(default_factory=dict)


class Hub:
    """The hub and the host that its large files lie on."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.repositories: dict[str, Repository] = {}
        self.faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.sent: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.xet_hashes: dict[str, str] = {}  # by SHA-256
        self.xet_store = ""
        self.servers = {name: _Server((host, 0), _handler(self, name)) for name in ("hub", "store")}
        for server in self.servers.values():
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """The address to give as HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """The hub's port."""
        return int(self.servers["hub"].server_address[1])

    def close(self) -> None:
        """Ends both servers, and lets go what they hold back."""
        for fault in self.faults:
            fault.release.set()
        for server in self.servers.values():
            server.shutdown()
            server.server_close()

    def add(self, name: str, files: dict[str, bytes], branch: str = "main", **more: Any) -> str:
        """Commits files to a repository; returns the commit."""
        repository = self.repositories.setdefault(name, Repository())
        for key, value in more.items():
            setattr(repository, key, value)
        commit = hashlib.sha1(f"{name}{len(repository.commits)}".encode()).hexdigest()  # noqa: S324 - a name, no secret
        repository.commits[commit] = files
        repository.refs[branch] = commit
        return commit

    def add_folder(self, name: str, folder: Path, **more: Any) -> str:
        """Commits a folder's files."""
        files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        return self.add(name, files, **more)

    def fail(self, where: str, **more: Any) -> Fault:
        """Lets the next request for a path fail."""
        fault = Fault(where, **more)
        self.faults.append(fault)
        return fault

    def strike(self, path: str) -> Fault | None:
        """Returns the fault of a request, and counts it down."""
        with self.lock:
            fault = next((one for one in self.faults if one.where in path and one.times > 0), None)
            if fault:
                fault.times -= 1
        return fault

    def paths(self, server: str = "hub") -> list[str]:
        """The paths that a server was asked for."""
        return [one.path for one in self.asked if one.server == server]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: clients that hang up are what the tests are about."""


def listed(name: str, content: bytes, **lies: Any) -> dict[str, Any]:
    """A file as the API lists it."""
    found: dict[str, Any] = {"rfilename": name, "size": len(content), "blobId": git_hash(content)}
    if name.endswith(LARGE):
        found["lfs"] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "pointerSize": 130}
    return {**found, **lies}


def git_hash(content: bytes) -> str:
    """The hash that Git gives a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 - Git's own


def _handler(hub: Hub, server: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 - the base class calls it so
            """Says nothing."""

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
            hub.asked.append(Asked(server, self.command, path, self.headers.get("Range"), token))
            fault = hub.strike(path)
            if fault:
                fault.struck.set()
            if fault and fault.status:
                self.answer(fault.status, fault.content or b"{}", fault.headers)
            elif path.startswith("/api/models/"):
                self.list_files(path.removeprefix("/api/models/"), token)
            elif path.startswith("/store/"):
                self.send_file(Path(path).name, find_content(hub, Path(path).name), fault)
            else:
                self.resolve(path, token, fault)

        def do_HEAD(self) -> None:
            self.do_GET()

        def list_files(self, path: str, token: str | None) -> None:
            if "/xet-read-token/" in path:
                far = {"X-Xet-Cas-Url": hub.xet_store, "X-Xet-Access-Token": "xet", "X-Xet-Token-Expiration": "4000000000"}
                self.answer(200, b"{}", far)
                return
            name, _, asked = path.partition("/revision/")
            repository = self.permitted(name, token)
            if repository is None:
                return
            commit = repository.refs.get(asked or "main", asked)
            if commit not in repository.commits:
                self.answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
                return
            files = [listed(file, content, **repository.lies.get(file, {}))
                     for file, content in repository.commits[commit].items()]  # fmt: skip
            self.answer(200, json.dumps({"id": name, "sha": commit, "siblings": files}).encode())

        def permitted(self, name: str, token: str | None) -> Repository | None:
            repository = hub.repositories.get(name)
            if repository is None or (repository.token and not repository.is_gated and token != repository.token):
                code = 404 if token else 401  # as the real one: without a token it does not say whether there is one
                self.answer(code, b"{}", {"X-Error-Code": "RepoNotFound"})
                return None
            if repository.is_gated and token != repository.token:
                self.answer(403 if token else 401, b"{}", {"X-Error-Code": "GatedRepo"})
                return None
            return repository

        def resolve(self, path: str, token: str | None, fault: Fault | None) -> None:
            name, _, rest = path.strip("/").partition("/resolve/")
            commit, _, file = rest.partition("/")
            repository = self.permitted(name, token)
            if repository is None:
                return
            content = repository.commits.get(commit, {}).get(file)
            if content is None:
                self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            elif file.endswith(LARGE):
                digest = hashlib.sha256(content).hexdigest()
                port = hub.servers["store"].server_address[1]
                headers = {"Location": f"http://localhost:{port}/store/{digest}", "X-Repo-Commit": commit,
                           "X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(content))}  # fmt: skip
                if digest in hub.xet_hashes:
                    headers["X-Xet-Hash"] = hub.xet_hashes[digest]
                    headers["X-Xet-Refresh-Route"] = f"{hub.url}/api/models/{name}/xet-read-token/{commit}"
                self.answer(302, b"", headers)
            else:
                self.send_file(file, content, fault)

        def send_file(self, name: str, content: bytes, fault: Fault | None) -> None:
            body = content if fault is None or fault.content is None else fault.content
            asked = self.headers.get("Range")
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and not (fault and fault.no_range) else 0
            if start and start >= len(body):
                self.answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            if self.command != "HEAD":
                self.send_body(name, body[start:], fault or Fault(""))

        def send_body(self, name: str, body: bytes, fault: Fault) -> None:
            held = fault.hold_at
            for offset in range(0, len(body), BLOCK):
                if fault.cut_at is not None and offset >= fault.cut_at:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if held is not None and offset >= held:
                    self.wfile.flush()
                    fault.at_hold()
                    fault.release.wait(LIMIT_S)
                    held = None
                self.wfile.write(body[offset : offset + BLOCK])
                with hub.lock:
                    hub.sent[name] += len(body[offset : offset + BLOCK])

        def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    return Handler


def find_content(hub: Hub, digest: str) -> bytes:
    """The large file with this hash."""
    every = (content for one in hub.repositories.values() for files in one.commits.values() for content in files.values())
    return next(content for content in every if hashlib.sha256(content).hexdigest() == digest)
