"""A reply's body as it comes: passed on byte for byte, its end known, and nothing taken for a chunk that is none."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.gateway.framing import (
    CLOSING_LIMIT_BYTES,
    LINE_LIMIT_BYTES,
    BrokenFraming,
    ChunkedBody,
    OpenBody,
    SizedBody,
    size_line,
)

PIECES = st.lists(st.binary(min_size=1, max_size=40) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"5\r\n"]), max_size=6)
TRAILERS = st.sampled_from([b"", b"x: y\r\n", b"x: y\r\nz: 0\r\n"])
SIZES = st.sampled_from([b"%x", b"%X", b"00%x", b"%x;a=b", b"%x  ", b'%x ; name="v"'])
CUTS = st.lists(st.integers(0, 400), max_size=8)


def chunks(pieces: Iterable[bytes], trailers: bytes = b"", size: bytes = b"%x") -> bytes:
    return b"".join(b"%s\r\n%s\r\n" % (size % len(one), one) for one in pieces) + b"0\r\n" + trailers + b"\r\n"


def split(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    at = sorted(min(cut, len(data)) for cut in cuts)
    return [data[begin:end] for begin, end in itertools.pairwise([0, *at, len(data)])]


def pass_on(body: ChunkedBody | SizedBody, parts: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Returns what was passed on, and what came after the end."""
    passed, after = b"", b""
    for part in parts:
        if body.done:
            after += part
            continue
        passed += body.feed(part)
        after += body.rest
    return passed, after


def read_with_h11(raw: bytes) -> bytes:
    """Returns a chunked body as another reader understands it, which has to find its end."""
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + raw)
    read = b""
    while not isinstance(event := reader.next_event(), h11.EndOfMessage):
        assert event is not h11.NEED_DATA, "the body does not end"
        read += bytes(event.data) if isinstance(event, h11.Data) else b""
    return read


@given(PIECES, TRAILERS, SIZES, CUTS, st.sampled_from([b"", b"HTTP/1.1 200 OK"]))
def test_however_it_is_split_every_byte_is_passed_on_and_nothing_after_the_end(
    pieces: list[bytes], trailers: bytes, size: bytes, cuts: list[int], extra: bytes
) -> None:
    raw = chunks(pieces, trailers, size)
    body = ChunkedBody()
    assert pass_on(body, split(raw + extra, cuts)) == (raw, extra)
    assert body.done


@given(PIECES, TRAILERS, SIZES, CUTS)
def test_however_it_is_split_what_the_chunks_hold_is_the_same(
    pieces: list[bytes], trailers: bytes, size: bytes, cuts: list[int]
) -> None:
    body, held = ChunkedBody(), b""
    for part in split(chunks(pieces, trailers, size), cuts):
        held += body.decode(part)
    assert (held, body.done) == (b"".join(pieces), True)


@given(PIECES, TRAILERS, CUTS, st.data())
def test_a_body_that_breaks_anywhere_can_be_closed_with_one_more_event(
    pieces: list[bytes], trailers: bytes, cuts: list[int], data: st.DataObject
) -> None:
    raw = chunks(pieces, trailers)
    came = raw[: data.draw(st.integers(0, len(raw) - 1))]
    body = ChunkedBody()
    passed, _ = pass_on(body, split(came, cuts))
    assert not body.done
    closing = body.closing()
    assert closing is not None
    read = read_with_h11(passed + closing + chunks([b"error"]))
    whole = b"".join(pieces)
    assert read.endswith(b"error")
    kept = read.removesuffix(b"error")
    assert kept.rstrip(b"\n") == whole[: len(kept.rstrip(b"\n"))]


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n", b"x\r\n", b"-1\r\n", b"+1\r\na\r\n", b"0x1\r\na\r\n", b" 1\r\na\r\n", b"1_0\r\n", b"1\n",
        b"f" * 16 + b"\r\n", b"2\r\nabc\r\n0\r\n\r\n", b"2\r\nab\n\r0\r\n\r\n", b"3\r\nab\r\n0\r\n\r\n",
        b"1;" + b"a" * (LINE_LIMIT_BYTES + 1) + b"\r\n", b"1;" + b"a" * (LINE_LIMIT_BYTES + 1),
        b"0\r\n" + b"x: %s\r\n" % (b"y" * 500) * 20,
    ],
    ids=[
        "empty", "word", "minus", "plus", "0x", "space", "underscore", "bare line feed", "too large", "too long",
        "other ends", "too short", "long line", "endless line", "endless trailers",
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_what_is_no_chunk_is_refused_and_no_end_is_passed_on(raw: bytes, step: int) -> None:
    body = ChunkedBody()
    with pytest.raises(BrokenFraming):
        for part in split(raw + b"\r\n" * 8, range(step, len(raw), step)):
            assert not body.feed(part).endswith(b"0\r\n\r\n")


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=3), st.data())
def test_a_chunk_whose_end_was_bent_is_refused_however_it_is_split(pieces: list[bytes], data: st.DataObject) -> None:
    raw = bytearray(b"%x\r\n%s\r\n" % (len(pieces[0]), pieces[0]))
    raw[-data.draw(st.sampled_from([1, 2]))] = ord("x")
    for read in ("feed", "decode"):
        body = ChunkedBody()
        with pytest.raises(BrokenFraming):
            for part in split(bytes(raw) + chunks(pieces[1:]), data.draw(CUTS)):
                getattr(body, read)(part)


def test_the_last_chunk_is_passed_on_with_its_trailers_only() -> None:
    body = ChunkedBody()
    assert body.feed(b"1\r\na\r\n0\r\nx: ") == b"1\r\na\r\n"
    assert body.closing() == b""
    assert body.feed(b"y\r\n") == b""
    assert body.feed(b"\r\n") == b"0\r\nx: y\r\n\r\n"
    assert body.done


def test_a_chunk_too_large_to_be_closed_is_told() -> None:
    body = ChunkedBody()
    body.feed(b"%x\r\n" % (CLOSING_LIMIT_BYTES * 2))
    assert body.closing() is None


@given(st.binary(max_size=50), CUTS, st.binary(max_size=5))
def test_a_sized_body_ends_where_it_said(raw: bytes, cuts: list[int], extra: bytes) -> None:
    body = SizedBody(len(raw))
    assert pass_on(body, split(raw + extra, cuts)) == (raw, extra)
    assert body.done


def test_an_open_body_has_no_end_of_its_own() -> None:
    body = OpenBody()
    assert body.feed(b"0\r\n\r\n") == b"0\r\n\r\n"
    assert not body.done


@given(st.integers(1, 2**20))
def test_a_whole_chunk_is_known_by_its_length_and_first_line(held_bytes: int) -> None:
    line = b"%x\r\n" % held_bytes
    assert size_line(len(line) + held_bytes + 2) == line


@pytest.mark.parametrize("chunk_bytes", [0, 1, 5, 15 + 6, 255 + 7, 4095 + 8])
def test_no_line_is_made_up_for_a_length_that_no_chunk_has(chunk_bytes: int) -> None:
    assert size_line(chunk_bytes) == b"?"
