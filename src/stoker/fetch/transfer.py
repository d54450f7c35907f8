"""Fetches one file: takes up what is there, asks for the rest, verifies all of it, and gives it its name."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import httpx
from filelock import Timeout
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import WeakFileLock, hf_raise_for_status  # type: ignore[attr-defined]

from stoker.errors import StokerError
from stoker.fetch import xet
from stoker.fetch.checksum import find_fault
from stoker.fetch.listing import HubFile, Listing
from stoker.fetch.meter import Meter
from stoker.fetch.patience import step_s
from stoker.fetch.places import Place
from stoker.fetch.refusals import stalled
from stoker.fetch.wire import Wire
from stoker.records import MIB

FULL = (errno.ENOSPC, errno.EDQUOT)
LOCK_STEP_S = 1.0


class Job(NamedTuple):
    """One repository's way from the hub to its place."""

    wire: Wire
    listing: Listing
    place: Place
    meter: Meter


class CutShort(Exception):
    """The content ended, or began, elsewhere than it should."""


def fetch_file(job: Job, file: HubFile) -> None:
    """Leaves the whole, verified file in its place; raises StokerError with what went wrong."""
    try:
        _fetch(job, file)
    except OSError as problem:
        if problem.errno not in FULL:
            raise StokerError(f"{job.place.folder} cannot be written", why=str(problem)) from problem
        raise StokerError(
            f"the disk of {job.place.folder} is full",
            why=f"{file.name} did not fit; somebody else filled it while this fetch went on",
            next_step="make room and run the same command again, it goes on where it stopped; or fetch --to another disk",
        ) from problem


def _fetch(job: Job, file: HubFile) -> None:
    content, partial, lock = job.place.content(file), job.place.partial(file), job.place.lock(file)
    for path in (content, partial, lock):
        path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(job, file, lock):
        if content.exists() and _is_right(job, file, content) is None:
            job.place.show(file)
            return
        _fetch_verified(job, file, partial)
        _settle(partial)
        partial.replace(content)
        job.place.show(file)


@contextmanager
def _locked(job: Job, file: HubFile, lock: Path) -> Iterator[None]:
    """Holds the lock that the hub's own library takes too; says so where another process has it."""
    is_told = False
    while True:
        job.wire.patience.check()
        try:
            with WeakFileLock(lock, timeout=LOCK_STEP_S):
                yield
                return
        except Timeout:
            if not is_told:
                job.wire.patience.tell(f"{file.name} is being fetched by another process; waiting for it")
            is_told = True


def _settle(file: Path) -> None:
    """Waits until the disk has it, so that a power loss does not leave a name without its content."""
    with file.open("rb") as content:
        os.fsync(content.fileno())


def _is_right(job: Job, file: HubFile, content: Path) -> str | None:
    """Verifies content that is there; content that is wrong is removed."""
    fault = _verify(job, file, content)
    if fault is not None:
        job.wire.patience.tell(f"{file.name} is on disk and not what the hub lists ({fault}); fetching it again")
        content.unlink()
        job.meter.found(-file.size_bytes)
    return fault


def _fetch_verified(job: Job, file: HubFile, partial: Path) -> None:
    for is_last in (False, True):
        _fill(job, file, partial)
        fault = _verify(job, file, partial)
        if fault is None:
            return
        partial.unlink()
        job.meter.found(-file.size_bytes)
        if not is_last:
            job.wire.patience.tell(f"{file.name} came wrong ({fault}); it was deleted and is fetched again, once")
    raise StokerError(
        f"{file.name} of {job.listing.repository} came wrong twice",
        why=fault or "",
        next_step="a proxy or mirror may alter it: try another network or `endpoint`; else tell the repository's owner",
    )


def _verify(job: Job, file: HubFile, path: Path) -> str | None:
    seen = 0

    def tell(count: int) -> None:
        nonlocal seen
        seen += count
        job.meter.checked(count)
        job.wire.patience.check()

    fault = find_fault(path, file, tell)
    if fault is not None:
        job.meter.checked(-seen)
    return fault


def _fill(job: Job, file: HubFile, partial: Path) -> None:
    """Appends until the file has its size; gives up after `tries` attempts in a row without a byte."""
    failures = 0
    with partial.open("ab", buffering=0) as out:
        _drop_excess(job, file, out)
        while out.tell() < file.size_bytes:
            before = out.tell()
            try:
                _append(job, file, out)
                problem = "the connection ended before the file did"
            except HfHubHTTPError as answer:
                question = job.wire.asked(job.listing.repository, job.listing.asked)
                failures = job.wire.wait_for(question, answer.response, failures)
                continue
            except (httpx.RequestError, CutShort, xet.XetFailed) as cut:
                problem = _said(cut, job.wire.settings.stall_s)
            failures = _go_on(job, file, out.tell() - before, problem, failures) if out.tell() < file.size_bytes else 0


def _said(problem: Exception, stall_s: float) -> str:
    if isinstance(problem, httpx.ReadTimeout):
        return f"nothing came for {stall_s:g} s (limit `stall_s`)"
    return str(problem) if isinstance(problem, (CutShort, xet.XetFailed)) else f"{type(problem).__name__}: {problem}"


def _go_on(job: Job, file: HubFile, grown_bytes: int, problem: str, failures: int) -> int:
    """Returns the failures in a row after another one; waits, or gives up."""
    if grown_bytes >= MIB:
        return 0
    failures = 0 if grown_bytes > 0 else failures + 1
    if failures >= job.wire.settings.tries:
        raise stalled(file.name, problem, failures)
    job.wire.patience.wait(step_s(max(1, failures)), f"{file.name}: {problem}")
    return failures


def _drop_excess(job: Job, file: HubFile, out: BinaryIO) -> None:
    out.seek(0, os.SEEK_END)
    if out.tell() > file.size_bytes:
        out.truncate(0)
        out.seek(0)


def _append(job: Job, file: HubFile, out: BinaryIO) -> None:
    """Appends what one answer brings; more than was listed is cut off, since it is wrong whatever it is."""
    for chunk in _chunks(job, file, out):
        job.wire.patience.check()
        wanted = chunk[: file.size_bytes - out.tell()]
        _write_all(out, wanted)
        job.meter.fetched(len(wanted))
        if len(wanted) < len(chunk):
            return


def _write_all(out: BinaryIO, chunk: bytes) -> None:
    while chunk:
        chunk = chunk[out.write(chunk) :]


def _chunks(job: Job, file: HubFile, out: BinaryIO) -> Iterator[bytes]:
    offset = out.tell()
    if xet.wants_xet(job.wire.settings.xet, file):
        found = xet.read_chunks(job.wire, job.listing, file, offset)
        if found is not None:
            yield from found
            return
    with job.wire.stream(job.listing, file, offset) as response:
        hf_raise_for_status(response)
        if offset and response.status_code == httpx.codes.OK:  # the whole file, from its beginning
            job.meter.found(-offset)
            out.truncate(0)
            out.seek(0)
        elif offset and not response.headers.get("content-range", "").startswith(f"bytes {offset}-"):
            raise CutShort(f"byte {offset:,} was asked for, and another part came")
        yield from response.iter_raw()
