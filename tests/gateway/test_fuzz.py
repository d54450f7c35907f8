"""Random and bent requests against a client's connection, compared with h11: `STOKER_FUZZ` says how many (2,000)."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from urllib.parse import unquote

import pytest

from fuzzing import NOT_COMPARED, Played, Player, Taken, read_with_h11
from http_grammar import make_input, split
from stoker.gateway.connection import ClientConnection
from stoker.gateway.exchange import Exchange

INPUTS = int(os.environ.get("STOKER_FUZZ", "2000"))
BATCHES = 10
# Where h11 stops and we go on: how many hosts there are is the door's question, and line ends before a request are skipped.
TOLERATED = (
    NOT_COMPARED, "Host: header", "no request line received",
    "request line: bytearray(b'\\r", "request line: bytearray(b'\\n",
)  # fmt: skip
SHRINK_TRIES = 2000


@pytest.fixture
def player() -> Iterator[Player]:
    """A player whose loop has met no exception at the end."""
    player = Player()
    yield player
    player.loop.close()
    assert player.faults == []


def check(player: Player, stream: bytes, dice: Random) -> Played:
    """Plays an input whole and in pieces; fails where the two differ, or where h11 reads it otherwise."""
    whole = player.play([stream], waits=False)
    pieces = player.play(split(dice, stream), waits=True)
    statuses = {pieces.refused, whole.refused}
    # How much of a head has come without an end is looked at with each piece: of two faults either may be met first.
    assert len(statuses) == 1 or 431 in statuses, "it depends on how the bytes come"
    assert pieces.taken == whole.taken, "it depends on how the bytes come"
    read, why = read_with_h11(stream)
    for ours, theirs in zip(whole.taken, map(_as_ours, read), strict=False):
        assert ours == theirs, "h11 reads it otherwise"
    if not any(sign in why for sign in TOLERATED):
        assert len(whole.taken) <= len(read), f"taken, but h11 refuses it: {why}"
    return whole


def _as_ours(taken: Taken) -> Taken:
    if taken.target.lower().startswith((b"http://", b"https://")):
        taken = _as_origin(taken)
    path, _, query = taken.target.partition(b"?")
    return taken._replace(target=unquote(path.decode("latin-1")).encode() + b"?" + query)


def _as_origin(taken: Taken) -> Taken:
    """Returns a request as if its target had been a path, and its host where it belongs."""
    after = taken.target.partition(b"://")[2]
    host = re.split(rb"[/?#]", after)[0]
    rest = after.removeprefix(host)
    headers = tuple((name, host if name == b"host" else value) for name, value in taken.headers)
    if b"host" not in dict(headers):
        headers += ((b"host", host),)
    return taken._replace(target=rest if rest[:1] == b"/" else b"/" + rest, headers=headers)


def shrink(stream: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Returns a smaller input that still fails."""
    size, tries = len(stream), 0
    while size and tries < SHRINK_TRIES:
        begin = 0
        while begin < len(stream):
            tries += 1
            shorter = stream[:begin] + stream[begin + size :]
            begin, stream = (begin, shorter) if fails(shorter) else (begin + size, stream)
        size //= 2
    return stream


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_requests_are_answered_or_refused_and_never_read_in_two_ways(player: Player, batch: int) -> None:
    taken = refused = 0
    for number in range(INPUTS // BATCHES):
        seed = batch * INPUTS + number
        stream = make_input(Random(seed))
        try:
            played = check(player, stream, Random(seed))
        except Exception as problem:  # noqa: BLE001 - whatever it is, the input is shown
            smallest = shrink(stream, partial(_fails, seed, problem))
            pytest.fail(f"seed {seed}: {problem}\nsmallest input: {smallest!r}\ncame of: {stream!r}")
        taken += len(played.taken)
        refused += played.refused is not None
    assert taken > INPUTS // BATCHES // 3, "hardly anything was taken: the fuzz tests nothing"
    assert refused > INPUTS // BATCHES // 10, "hardly anything was refused: the fuzz tests nothing"
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, ClientConnection | Exchange)]


def _fails(seed: int, as_before: Exception, stream: bytes) -> bool:
    player = Player()
    try:
        check(player, stream, Random(seed))
    except Exception as problem:  # noqa: BLE001 - it is the kind of failure that is looked for
        return type(problem) is type(as_before) and str(problem)[:30] == str(as_before)[:30]
    finally:
        player.loop.close()
    return False
