"""Reads files through Xet, the hub's other way to hand them out. It too can begin in the middle of a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub import get_hf_file_metadata, hf_hub_url

from stoker.fetch.listing import HubFile, Listing
from stoker.fetch.wire import Wire

# The hub's library: files beyond this are not handed out by plain HTTP.
PLAIN_LIMIT_BYTES = 50 * 10**9


class XetFailed(Exception):
    """What Xet's own client says went wrong."""


def wants_xet(chosen: bool | None, file: HubFile) -> bool:
    """Tells whether a file comes through Xet: where the user says so, else only where plain HTTP does not have it.

    Plain HTTP by default: downloads through Xet are reported to stand still (rules hf-ipv6-xet-download-stall and
    hf-xet-stall-hfxet-upgrade), and which of the two explanations holds is disputed.
    """
    return file.is_large and (chosen if chosen is not None else file.size_bytes > PLAIN_LIMIT_BYTES)


def read_chunks(wire: Wire, listing: Listing, file: HubFile, offset: int) -> Iterator[bytes] | None:
    """Returns the content from an offset on; None where the hub does not have this file in Xet."""
    from huggingface_hub.utils._xet import get_xet_session, refresh_xet_connection_info, xet_headers_without_auth

    url = hf_hub_url(listing.repository, file.name, revision=listing.revision, endpoint=wire.endpoint)
    found = get_hf_file_metadata(
        url, token=wire.token or False, timeout=wire.settings.stall_s, endpoint=wire.endpoint
    ).xet_file_data
    if found is None:
        return None
    connection = refresh_xet_connection_info(file_data=found, headers=wire.headers)
    session = get_xet_session()  # type: ignore[no-untyped-call]
    group = session.new_download_stream_group(
        endpoint=connection.endpoint, token=connection.access_token, token_expiry_unix_secs=connection.expiration_unix_epoch,
        token_refresh_url=found.refresh_route, token_refresh_headers=wire.headers,
        custom_headers=xet_headers_without_auth(wire.headers),
    )  # fmt: skip
    return _stream(group, found.file_hash, file, offset, wire.settings.stall_s)


def _stream(group: object, xet_hash: str, file: HubFile, offset: int, stall_s: float) -> Iterator[bytes]:
    from hf_xet import XetFileInfo

    try:
        stream = group.download_stream(XetFileInfo(xet_hash, file.size_bytes), start=offset)  # type: ignore[attr-defined]
        while True:
            with _watched(stream, stall_s) as cut:
                chunk = next(stream, None)
            if cut.is_set():
                raise XetFailed(f"nothing came through Xet for {stall_s:g} s (limit `stall_s`)")
            if chunk is None:
                return
            yield chunk
    except (RuntimeError, OSError) as problem:
        raise XetFailed(f"{type(problem).__name__}: {problem}") from problem


@contextmanager
def _watched(stream: object, stall_s: float) -> Iterator[threading.Event]:
    """Cancels a stream that sends nothing: its client has no limit of its own."""
    cut = threading.Event()

    def cancel() -> None:
        cut.set()
        stream.cancel()  # type: ignore[attr-defined]

    timer = threading.Timer(stall_s, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield cut
    finally:
        timer.cancel()
