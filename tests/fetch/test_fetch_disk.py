"""`stoker fetch` where the disk has no room, before it begins and in the middle."""

from __future__ import annotations

from pathlib import Path

from real_tools import run_on_a_small_disk
from stoker.errors import Refused
from stoker.fetch.room import check_room
from stoker.records import GIB
from support import fails

SMALL_DISK = Path(__file__).with_name("fetch_on_small_disk.py")


def test_what_does_not_fit_is_refused_before_a_byte_is_fetched(tmp_path: Path) -> None:
    said = run_on_a_small_disk(tmp_path, 8, SMALL_DISK, "too small")
    assert said.startswith("exit 3\n")
    for part in ("3 MiB are to be fetched", f"{tmp_path}/hf/hub", "6 MiB stay free", "next: make room", "--to"):
        assert part in said
    assert "asked of the store: 0" in said


def test_a_disk_that_fills_up_meanwhile_is_told_and_the_fetch_goes_on_when_there_is_room(tmp_path: Path) -> None:
    said = run_on_a_small_disk(tmp_path, 8, SMALL_DISK, "filled")
    assert said.startswith("exit 1\n")
    assert "is full" in said
    assert "make room and run the same command again" in said
    assert "exit 0" in said
    assert "went on: True" in said


def test_what_stays_free_counts_and_an_unknown_disk_is_not_judged(tmp_path: Path) -> None:
    check_room(tmp_path, 5 * GIB, 6 * GIB, GIB)
    check_room(tmp_path, 5 * GIB, None, GIB)
    check_room(tmp_path, 0, 0, GIB)
    with fails(Refused, "5.0 GiB are to be fetched", "has 5.9 GiB free", "1.0 GiB stay free"):
        check_room(tmp_path, 5 * GIB, int(5.9 * GIB), GIB)
