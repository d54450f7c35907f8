"""Whether an image is seen, refused, or silently left out."""

from __future__ import annotations

import base64
import struct
import zlib

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, degraded, failed, not_offered, passed
from stoker.probes.kit.probe import Probe

TOKENS = 24
SIDE = 64
COLOURS = {"red": (220, 20, 20), "green": (20, 180, 20), "blue": (20, 20, 220)}
NO_IMAGE = ("image", "vision", "multimodal", "multi-modal", "mmproj", "content")


def render_png(red: int, green: int, blue: int) -> bytes:
    """Returns a square of one colour as a PNG."""
    line = b"\0" + bytes((red, green, blue)) * SIDE
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(line * SIDE)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


async def colour(ask: Asker) -> Finding:
    """The colour of three squares is told."""
    told = {}
    for name, parts in COLOURS.items():
        image = "data:image/png;base64," + base64.b64encode(render_png(*parts)).decode()
        content = [
            {"type": "text", "text": "Which colour is this image? Answer with one word."},
            {"type": "image_url", "image_url": {"url": image}},
        ]
        try:
            answer = await ask.chat([{"role": "user", "content": content}], max_tokens=TOKENS)
        except Declined as no:
            return _declined(no)
        told[name] = answer.text.lower()
    right = [name for name, text in told.items() if name in text]
    if len(right) == len(COLOURS):
        return passed("it tells the colours of three squares")
    if len(set(told.values())) == 1:
        return failed(f"it says {told['red'][:40]!r} to three different images: they are silently left out")
    return degraded(
        f"it tells {len(right)} of {len(COLOURS)} colours: {told}", "is the projector the model's own, and its type right?"
    )


def _declined(no: Declined) -> Finding:
    if any(word in no.message.lower() for word in NO_IMAGE):
        return not_offered(no.says)
    return failed(f"an image makes it say {no.says}", "serve it without images, or with the model's own projector")


PROBE = Probe(
    name="vision",
    sends="Three squares, red, green and blue.",
    expects="Their colours, or a refusal that speaks of images.",
    means="Clients show the model an image, and it makes its description up.",
    mend="serve the model with its projector (llama.cpp: --mmproj), or without images",
    checks=(colour,),
    tokens=len(COLOURS) * TOKENS,
    deep=True,
)
