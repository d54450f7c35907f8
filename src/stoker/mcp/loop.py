"""Standard input and output: lines in, answers out, several calls at once.

Reading and answering are apart, so that a ping is answered while a service is being verified; one thread alone writes, so
that no two answers mix. What anything else prints goes to standard error: the output belongs to the protocol.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import BinaryIO

from stoker.mcp.session import Session
from stoker.mcp.wire import INTERNAL_ERROR, INVALID_REQUEST, MOST_BYTES, Asked, RpcError, error_line, read_message

CALLS_AT_ONCE, MOST_WAITING = 4, 32
TOO_LONG = RpcError(INVALID_REQUEST, f"a line is at most {MOST_BYTES // 1024**2} MiB long")
TOO_MANY = RpcError(INTERNAL_ERROR, f"{MOST_WAITING} questions wait already; ask again when they are answered")
Answers = SimpleQueue[bytes | None]


def serve(session: Session) -> None:
    """Answers until the input ends, and then to the last question that came."""
    answers: Answers = SimpleQueue()
    writer = threading.Thread(target=_write, args=(_take_output(), answers), name="answers")
    writer.start()
    room = threading.Semaphore(MOST_WAITING)
    try:
        with ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call") as calls:
            for line in _read_lines(sys.stdin.buffer):
                _take(line, session, calls, answers, room)
    finally:  # Ctrl-C ends it too
        answers.put(None)
        writer.join()


def _take_output() -> BinaryIO:
    """The pipe to the client, to which nothing else can write from now on."""
    own = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return own


def _write(output: BinaryIO, answers: Answers) -> None:
    with suppress(OSError), output:  # a client that has left wants no answers
        while (line := answers.get()) is not None:
            output.write(line)
            output.flush()


def _read_lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yields lines; None for one that is too long, which is read to its end and forgotten."""
    while line := source.readline(MOST_BYTES):
        if line.endswith(b"\n") or len(line) < MOST_BYTES:
            yield line
            continue
        while (rest := source.readline(MOST_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield None


def _take(
    line: bytes | None, session: Session, calls: ThreadPoolExecutor, answers: Answers, room: threading.Semaphore
) -> None:
    """Answers what is answered at once, and hands a call to a thread."""
    if line is None:
        answers.put(error_line(None, TOO_LONG))
        return
    try:
        asked = read_message(line)
    except RpcError as error:
        answers.put(error_line(None, error))
        return
    if asked is None or asked.id is None:
        return
    if asked.method in ("initialize", "ping", "server/discover"):
        answers.put(session.answer(asked))
    elif room.acquire(blocking=False):
        calls.submit(_answer, asked, session, answers, room)
    else:
        answers.put(error_line(asked.id, TOO_MANY))


def _answer(asked: Asked, session: Session, answers: Answers, room: threading.Semaphore) -> None:
    try:
        answers.put(session.answer(asked))
    finally:
        room.release()
