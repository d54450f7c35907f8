"""Sentences into which a deed ("call Anna") or a thing ("the weather in Oslo") fits; some are held out."""

from __future__ import annotations

from dialogue.draw import Draw, sentences

DEED_FRAMES = sentences("frames", "deed_frames")
HELD_OUT_DEED_FRAMES = sentences("frames", "held_out_deed_frames")
THING_FRAMES = sentences("frames", "thing_frames")
HELD_OUT_THING_FRAMES = sentences("frames", "held_out_thing_frames")
ASIDES = sentences("frames", "asides")
HELD_OUT_ASIDES = sentences("frames", "held_out_asides")


def chosen(draw: Draw, frames: tuple[str, ...], open_end: bool) -> str:
    """A frame; a deed or thing that ends in free text must come last, or nobody knows where the text ends."""
    return draw.one([f for f in frames if f.rstrip(".?!").endswith("}")] if open_end else frames)


def frame_deed(draw: Draw, deed: str, open_end: bool) -> str:
    """A sentence that asks for a deed."""
    return chosen(draw, HELD_OUT_DEED_FRAMES if draw.held_out else DEED_FRAMES, open_end).replace("{deed}", deed)


def frame_thing(draw: Draw, thing: str, open_end: bool) -> str:
    """A sentence that asks for a thing."""
    return chosen(draw, HELD_OUT_THING_FRAMES if draw.held_out else THING_FRAMES, open_end).replace("{thing}", thing)


def aside(draw: Draw, text: str, first: bool) -> str:
    """The request with a sentence beside it that does not matter."""
    values = {"adjective": draw.value("adjective"), "thing": draw.value("thing"), "other": draw.word("adjective")}
    said = draw.phrase(draw.one(HELD_OUT_ASIDES if draw.held_out else ASIDES), values)
    whole = text if text[-1:] in ".?!" else text + "."
    return f"{said} {text}" if first or draw.chance(0.5) else f"{whole} {said}"
