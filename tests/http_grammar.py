"""Makes HTTP/1 requests for a fuzz: valid ones, and the ways in which attackers and bad clients bend them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

NASTY = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\n\n", b" ", b"\t", b"\x0b", b"\x0c", b"\x7f", b"\x80", b"\xff",
    b":", b";", b",", b"+", b"-", b"0", b"0x", b"1e9", b"%00", b"%0d%0a", b"#", b"?", b"\xc3\xa9", b"chunked",
    b"content-length: 3\r\n", b"a" * 300, b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n",
)  # fmt: skip
METHODS = (b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"PATCH")
ODD_METHODS = (
    b"get",
    b"CONNECT",
    b"TRACE",
    b"PRI",
    b"QUERY",
    b"BREW",
    b"M-SEARCH",
    b"",
    b" GET",
    b"G ET",
    b"GET\x00",
    b"SOURCE",
)
TARGETS = (b"/", b"/v1/models", b"/v1/chat/completions?x=1", b"/a%20b", b"*", b"/a/../b", b"//x")
ODD_TARGETS = (
    b"http://x/v1/models", b"http://other/", b"x:443", b"", b"/a b", b"/a\tb", b"/\x00", b"/\xc3\xa9", b"/a#b", b"?",
    b"\\", b"a", b"/" + b"a" * 5000, b"http://x:99999/", b"/%", b"/%zz", b"https://u:p@x/",
)  # fmt: skip
VERSIONS = (b" HTTP/1.1",) * 12 + (b" HTTP/1.0",) * 3
ODD_VERSIONS = (
    b"", b" ", b" HTTP/0.9", b" HTTP/2.0", b" HTTP/1.2", b" HTTP/1.11", b" HTTP/11", b" http/1.1", b" ICE/1.0",
    b"  HTTP/1.1", b"\tHTTP/1.1", b" HTTP/1.1 ", b" HTTP/ 1.1", b" HTTP/3", b" HTTP/1.", b" RTSP/1.0",
)  # fmt: skip
HEADERS = (
    b"accept: */*", b"User-Agent: a (b; c) d/1.0", b"x-request-id: 7", b"expect: 100-continue",
    b"connection: keep-alive", b"connection: close", b"Connection: Keep-Alive, x", b"x-empty:", b"x-spaces:  a  ",
    b"cookie: a=b; c=d", b"te: trailers", b"accept-encoding: gzip", b"origin: http://x",
    b"connection: close, keep-alive",
)  # fmt: skip
ODD_HEADERS = (
    b"connection: upgrade\r\nupgrade: websocket",
    b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AA", b"upgrade: h2c", b"x : 1", b": 1",
    b"x", b" x: 1", b"x: a\r\n b", b"x:\r\n\ty", b"x: a\x00b", b"x: a\rb", b"x: a\nb", b"x\x00: 1", b"x(y: 1",
    b"\xc3\xa9: 1", b"x: \xc3\xa9\xff", b"x: a\x0bb", b"x: a\x7fb", b"host: y", b"Host:", b"host: x, y",
    b"expect: other", b"content-length", b"content-length:", b"transfer-encoding", b"transfer-encoding:",
    b"x: " + b"a" * 70_000, b"proxy-connection: close", b"x\ty: 1", b"connection: content-length",
    b"connection: \x0bclose", b"x:1\r\r\n",
)  # fmt: skip
LENGTHS = (
    b"+%d", b"-%d", b"0%d", b"%d, %d", b"%d,%d", b"0x%d", b"%d.0", b" %d ", b"%d\x0b", b"%d ", b"1%d", b"%d 0", b"",
    b"\x00%d", b"99999999999999999999%d", b"%d;", b"\xb2", b"%d\t", b"_%d", b"1_%d",
)  # fmt: skip
ENCODINGS = (
    b"chunked", b"Chunked", b"CHUNKED", b"chunked ", b" chunked", b"\x0bchunked", b"chunked\x0b", b"xchunked",
    b"chunkedx", b"identity", b"chunked, identity", b"identity, chunked", b"gzip, chunked", b"chunked, chunked",
    b"chunked,", b",chunked", b"\"chunked\"", b"chunked;q=1", b"gzip", b"", b"chu\r\n nked",
    b"chunked\r\ntransfer-encoding: chunked", b"chunked\r\ntransfer-encoding: identity",
    b"identity\r\ntransfer-encoding: chunked",
)  # fmt: skip
SIZES = (
    b"0x%x", b"+%x", b"-%x", b" %x", b"%x ", b"00%x", b"%x\t", b"%xg", b"", b"fffffffffffffff%x",
    b"10000000000000000%x", b"%x\x00", b"%x_0", b"ffffffff%x",
)  # fmt: skip
EXTENSIONS = (
    b";a",
    b";a=b",
    b';a="b;c"',
    b";",
    b"; ",
    b" ;a=b",
    b";a=\x00",
    b";a=b\nx",
    b";a\rb",
    b";\xff",
    b";" + b"a" * 900,
    b';a="b',
)
TRAILERS = (
    b"x: y\r\n", b"content-length: 9\r\n", b"transfer-encoding: chunked\r\n", b"x\r\n", b" x: y\r\n",
    b"x: y\r\n z\r\n", b"x: \x00\r\n", b"host: other\r\nauthorization: Bearer k\r\n", b"x: y\n",
)  # fmt: skip


def make_input(dice: Random) -> bytes:
    """Returns what one client sends: one to four requests, some of them bent, and now and then cut short."""
    bent = dice.random()
    stream = b"".join(_request(dice, bent * 0.4) for _ in range(dice.choice((1, 1, 2, 3, 4))))
    for _ in range(dice.choice((0, 0, 0, 1, 2))):
        stream = _mutate(dice, stream)
    return stream[: dice.randrange(len(stream) + 1)] if dice.random() < 0.1 else stream


def split(dice: Random, stream: bytes) -> list[bytes]:
    """Returns the input in pieces, as they may come from a socket."""
    ends = sorted({dice.randrange(len(stream) + 1) for _ in range(dice.choice((0, 1, 2, 3, 9)))} | {0, len(stream)})
    return [stream[begin:end] for begin, end in pairwise(ends)]


def _mutate(dice: Random, stream: bytes) -> bytes:
    begin = dice.randrange(len(stream) + 1)
    end = min(len(stream), begin + dice.choice((0, 0, 1, 1, 2, 20)))
    new = dice.choice((dice.choice(NASTY), b"", bytes((dice.randrange(256),)), stream[begin:end] * 2))
    return stream[:begin] + new + stream[end:]


def _request(dice: Random, bent: float) -> bytes:
    if dice.random() < bent * 0.05:
        return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    line = _pick(dice, bent, METHODS, ODD_METHODS) + b" " + _pick(dice, bent, TARGETS, ODD_TARGETS)
    line += _pick(dice, bent, VERSIONS, ODD_VERSIONS)
    lines = [_pick(dice, bent, HEADERS, ODD_HEADERS) for _ in range(dice.randrange(4))]
    if dice.random() > bent * 0.2:
        lines.append(b"host: x")
    framing, body = _body(dice, bent)
    lines += framing
    dice.shuffle(lines)
    end = b"\r\n" if dice.random() > bent * 0.2 else dice.choice((b"\n", b"\r", b"\r\r\n", b"\r\n\r\n"))
    return end.join((line, *lines, b"", b"")) + body


def _pick(dice: Random, bent: float, plain: tuple[bytes, ...], odd: tuple[bytes, ...]) -> bytes:
    return dice.choice(odd if dice.random() < bent else plain)


def _body(dice: Random, bent: float) -> tuple[list[bytes], bytes]:
    """Returns the headers that frame a body, and the body."""
    kind = dice.choice(("none", "sized", "chunked"))
    if dice.random() < bent * 0.4:
        kind = dice.choice(("both", "two sizes", "odd size", "odd encoding"))
    whole = bytes(dice.choice(b"ab\r\n\x00\xff0{") for _ in range(dice.choice((0, 1, 5, 30))))
    size = b"content-length: %d" % len(whole)
    chunks = _chunks(dice, bent, whole)
    if kind == "none":
        return [], b""
    if kind == "sized":
        return [size], whole
    if kind == "chunked":
        return [b"transfer-encoding: chunked"], chunks
    if kind == "both":
        return [size, b"transfer-encoding: " + dice.choice(ENCODINGS)], dice.choice((whole, chunks))
    if kind == "two sizes":
        return [size, b"content-length: %d" % dice.choice((len(whole), 0, 3))], whole
    if kind == "odd size":
        return [b"content-length: " + dice.choice(LENGTHS).replace(b"%d", b"%d" % len(whole))], whole
    return [b"transfer-encoding: " + dice.choice(ENCODINGS)], dice.choice((whole, chunks))


def _chunks(dice: Random, bent: float, whole: bytes) -> bytes:
    middle = dice.randrange(len(whole) + 1)
    pieces = [piece for piece in (whole[:middle], whole[middle:]) if piece]
    written = b"".join(_chunk(dice, bent, piece) for piece in pieces)
    trailers = b"".join(dice.choice(TRAILERS) for _ in range(dice.choice((1, 2)))) if dice.random() < bent else b""
    return written + dice.choice((b"0", b"0", b"00" if bent else b"0")) + b"\r\n" + trailers + b"\r\n"


def _chunk(dice: Random, bent: float, piece: bytes) -> bytes:
    size = b"%x" % len(piece)
    if dice.random() < bent * 0.5:
        size = dice.choice(SIZES).replace(b"%x", size)
    extension = dice.choice(EXTENSIONS) if dice.random() < bent * 0.5 else b""
    ends = [dice.choice((b"\n", b"\r", b"", b"\r\n ")) if dice.random() < bent * 0.2 else b"\r\n" for _ in range(2)]
    return size + extension + ends[0] + piece + ends[1]
