"""The dashboard's files, as they lie in the package: no build step, nothing from elsewhere, and nothing secret in them."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import stoker

FOLDER = Path(__file__).parent / "page"
SHARED = Path(stoker.__file__).parent / "bench" / "report" / "assets"  # the charts of a bench report are drawn by the same
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
INDEX = "index.html"
POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "base-uri 'none'",
    "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
))  # fmt: skip
SAFE = {
    "content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "x-frame-options": "DENY", "cross-origin-resource-policy": "same-origin",
}  # fmt: skip


class _File(NamedTuple):
    packed: bytes
    kind: str
    tag: str


def page_routes() -> list[Route]:
    """Returns the routes of the page and its files."""
    return [Route("/", _show_index), Route("/page/{name}", _show_file)]


async def _show_index(request: Request) -> Response:
    return _answer(request, INDEX)


async def _show_file(request: Request) -> Response:
    return _answer(request, request.path_params["name"])


def _answer(request: Request, name: str) -> Response:
    if name not in page_files():
        return Response(f"There is no {name} here.", 404, {**SAFE, "cache-control": "no-store"}, "text/plain")
    file = _read(name)
    headers = {**SAFE, "cache-control": "no-cache", "etag": file.tag, "vary": "accept-encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(None, 304, headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, 200, {**headers, "content-encoding": "gzip"}, file.kind)
    return Response(gzip.decompress(file.packed), 200, headers, file.kind)


@cache
def page_files() -> dict[str, Path]:
    """Returns the files that are served, by name."""
    ours = {one.name: one for one in FOLDER.iterdir() if one.suffix in KINDS}
    return ours | {name: SHARED / name for name in ("uPlot.iife.min.js", "uPlot.min.css")}


@cache
def _read(name: str) -> _File:
    found = page_files()[name]
    data = found.read_bytes()
    tag = f'"{sha256(data).hexdigest()[:16]}"'
    return _File(gzip.compress(data, mtime=0), KINDS[found.suffix], tag)
