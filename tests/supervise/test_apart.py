"""Programs that run beside the daemon: what they print, or nothing, and none of them is left."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from stoker.box import is_running
from stoker.supervise.apart import read_apart


def run(*argv: str, limit_s: float = 60.0) -> bytes | None:
    return asyncio.run(read_apart(argv, limit_s))


def test_what_a_program_printed_is_returned() -> None:
    assert run(sys.executable, "-c", "print('x' * 200_000)") == b"x" * 200_000 + b"\n"


@pytest.mark.parametrize("argv", [("no-such-program-here",), (sys.executable, "-c", "print(1); raise SystemExit(3)")])
def test_one_that_is_missing_or_fails_printed_nothing(argv: tuple[str, ...]) -> None:
    assert run(*argv) is None


def test_one_that_outlasts_its_limit_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    sleeper = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"

    async def run_until_it_sleeps() -> None:
        asking = asyncio.ensure_future(read_apart((sys.executable, "-c", sleeper), 600.0))
        while not (file.exists() and file.read_text()):
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking])

    asyncio.run(run_until_it_sleeps())
    assert not is_running(int(file.read_text()))
    assert run("sleep", "600", limit_s=0.01) is None
