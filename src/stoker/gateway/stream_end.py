"""Tells whether a stream whose framing says nothing of its end has come to one, by the events of its protocol."""

from __future__ import annotations

# By the end of the path: what the last events of a whole stream hold. An engine's own error is an end too: it said so.
ENDS: dict[str, tuple[bytes, ...]] = {
    "/chat/completions": (b"[DONE]", b'"error"'),
    "/completions": (b"[DONE]", b'"error"'),
    "/messages": (b"message_stop", b'"error"'),
    "/responses": (b"response.completed", b"response.incomplete", b"response.failed", b'"error"'),
}


def lacks_its_end(path: str, tail: bytes) -> bool:
    """Tells whether the last bytes of a stream are none of an ended one; never of a path whose protocol is not known."""
    ends = next((ends for path_end, ends in ENDS.items() if path.endswith(path_end)), None)
    return ends is not None and not any(end in tail for end in ends)
