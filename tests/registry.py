"""A container registry of a test's own: images of one layer, for the processors that a test names."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


class Registry:
    """What the registry holds, by digest or tag, and the paths that were asked for."""

    def __init__(self) -> None:
        self.address = ""
        self.asked: list[str] = []
        self.documents: dict[str, tuple[str, bytes]] = {}

    def add(self, name: str, tag: str, tar: bytes, arches: tuple[str, ...]) -> str:
        """Adds an image for each of the processors, and returns the digest of their index."""
        layer = gzip.compress(tar, 1)
        manifests = [self._add_one(name, layer, tar, arch) for arch in arches]
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
        return str(self._put(f"/v2/{name}/manifests/", INDEX, _json(index), tag)["digest"])

    def _add_one(self, name: str, layer: bytes, tar: bytes, arch: str) -> dict[str, Any]:
        config = {
            "architecture": arch, "os": "linux", "config": {"Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar)]},
        }  # fmt: skip
        blobs = f"/v2/{name}/blobs/"
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": self._put(blobs, CONFIG, _json(config)),
            "layers": [self._put(blobs, LAYER, layer)],
        }  # fmt: skip
        one = self._put(f"/v2/{name}/manifests/", MANIFEST, _json(manifest))
        return {**one, "platform": {"os": "linux", "architecture": arch}}

    def _put(self, place: str, kind: str, content: bytes, tag: str = "") -> dict[str, Any]:
        for name in (_digest(content), tag):
            self.documents[place + name] = (kind, content)
        return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@contextmanager
def own_registry() -> Iterator[Registry]:
    """Serves a registry on a port of loopback."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            registry.asked.append(self.path)
            empty = ("application/json", b"{}")
            found = empty if self.path == "/v2/" else registry.documents.get(self.path)
            kind, content = found or empty
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the names are http.server's

        def log_message(self, *words: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
