"""Tells whether a file has the content that the hub lists: by its size, then by its hash."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from pathlib import Path

from stoker.fetch.listing import HubFile

BLOCK_BYTES = 4 * 1024**2


def find_fault(path: Path, file: HubFile, tell: Callable[[int], None]) -> str | None:
    """Returns what is wrong with the content at a path, or None; `tell` gets each number of bytes that was looked at."""
    have_bytes = path.stat().st_size
    if have_bytes != file.size_bytes:
        return f"it has {have_bytes:,} bytes where {file.size_bytes:,} are listed"
    digest = _digest(path, file, tell)
    if hmac.compare_digest(digest, file.digest):
        return None
    kind = "SHA-256" if file.is_large else "Git hash"
    return f"its {kind} is {digest[:12]}... where {file.digest[:12]}... is listed"


def _digest(path: Path, file: HubFile, tell: Callable[[int], None]) -> str:
    # Git hashes a small file with a header before it; SHA-1 is what it has. Large files have SHA-256.
    hashed = hashlib.sha256() if file.is_large else hashlib.sha1(b"blob %d\0" % file.size_bytes, usedforsecurity=False)
    with path.open("rb") as content:
        while block := content.read(BLOCK_BYTES):
            hashed.update(block)
            tell(len(block))
    return hashed.hexdigest()
