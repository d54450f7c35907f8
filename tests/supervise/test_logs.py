"""What an engine prints: bounded, readable, and not lost when its file is rotated under it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from real_tools import run_on_a_small_disk
from stoker.supervise.logs import LAUNCH, LINE_LIMIT_BYTES, READ_BYTES, RING_LINES, EngineLog

LIMIT_BYTES = 64 * 1024


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "engine.log"
    file.touch()
    return file


@pytest.fixture
def log(file: Path) -> EngineLog:
    return EngineLog(file, LIMIT_BYTES)


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as out:
        out.write(data)


def rotated(file: Path) -> Path:
    return file.with_name(file.name + ".1")


def test_lines_are_kept_as_they_come(file: Path, log: EngineLog) -> None:
    append(file, b"one\ntwo\n")
    assert log.tail(10) == ["one", "two"]
    append(file, b"three\n")
    assert log.tail(2) == ["two", "three"]
    assert log.tail(0) == []


def test_the_ring_is_bounded_and_keeps_the_last(file: Path, log: EngineLog) -> None:
    append(file, b"".join(b"%d\n" % number for number in range(RING_LINES + 500)))
    lines = log.tail(RING_LINES * 2)
    assert (len(lines), lines[0], lines[-1]) == (RING_LINES, "500", str(RING_LINES + 499))


def test_half_a_line_is_shown_and_completed(file: Path, log: EngineLog) -> None:
    append(file, b"loading mo")
    assert log.tail(5) == ["loading mo"]
    append(file, b"del\nnext")
    assert log.tail(5) == ["loading model", "next"]


def test_a_letter_that_was_cut_in_half_by_a_write_becomes_whole(file: Path, log: EngineLog) -> None:
    append(file, "größe".encode()[:3])
    log.poll()
    append(file, "größe".encode()[3:] + b"\n")
    assert log.tail(1) == ["größe"]


def test_invalid_utf8_is_replaced(file: Path, log: EngineLog) -> None:
    append(file, b"bad \xff\xfe byte\n")
    assert log.tail(1) == ["bad \ufffd\ufffd byte"]


def test_a_long_line_is_cut_to_its_beginning(file: Path, log: EngineLog) -> None:
    append(file, b"begin" + b"x" * (3 * READ_BYTES) + b"\nnext\n")
    long, short = log.tail(5)
    assert short == "next"
    assert long.startswith("begin")
    assert len(long) == LINE_LIMIT_BYTES


def test_a_line_that_never_ends_does_not_grow_in_memory(file: Path, log: EngineLog) -> None:
    for _ in range(5):
        append(file, b"x" * READ_BYTES)
        log.poll()
        assert len(log._partial) <= LINE_LIMIT_BYTES
    append(file, b"end\nnext\n")
    assert [len(line) for line in log.tail(5)] == [LINE_LIMIT_BYTES, 4]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[0;36m(APIServer pid=9)\x1b[0;0m INFO ok", "(APIServer pid=9) INFO ok"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b[2K\x1b[1Aup", "up"),
        (b"\x1b[?25lhidden\x1b[?25h", "hidden"),
        (b"\x1bMreverse", "reverse"),
        (b"windows\r", "windows"),
        (b" 10%\r 50%\r100%", "100%"),
        (b" 10%\r100%\r", "100%"),
        (b"", ""),
    ],
)
def test_a_line_is_shown_as_a_terminal_would_show_it(file: Path, log: EngineLog, raw: bytes, shown: str) -> None:
    append(file, raw + b"\n")
    assert log.tail(1) == [shown]


def test_a_progress_bar_shows_its_last_state_while_it_moves(file: Path, log: EngineLog) -> None:
    for percent in range(101):
        append(file, b"\rloading %d%% %s" % (percent, b"#" * 100))
        assert log.tail(1)[0].startswith(f"loading {percent}%")
        assert len(log._partial) < 300
    append(file, b"\r\n")
    assert log.tail(1)[0].startswith("loading 100%")


FULL_DISK = Path(__file__).with_name("full_log_disk.py")


def test_on_a_full_disk_the_former_log_stays_as_it_is(tmp_path: Path) -> None:
    assert run_on_a_small_disk(tmp_path, 4, FULL_DISK, "full").split() == ["former", "whole", "told", "rotated", "again"]


def test_a_new_launch_sees_its_own_lines_alone(file: Path, log: EngineLog) -> None:
    append(file, b"old launch\nhalf")
    log.poll()
    log.begin()
    append(file, b"new launch\n")
    assert log.tail(5) == ["new launch"]


def test_launches_are_told_apart_in_the_file_and_not_in_the_ring(file: Path, log: EngineLog) -> None:
    append(file, b"old launch\n")
    log.mark_launch("demo", 2)
    log.begin()
    append(file, b"new launch\n")
    assert log.tail(5) == ["new launch"]
    marks = [line for line in file.read_text().splitlines() if LAUNCH.search(line)]
    assert marks == ["stoker: launch 2 of demo begins"]


def test_a_file_that_is_not_there_yet_is_no_problem(tmp_path: Path) -> None:
    log = EngineLog(tmp_path / "later.log", LIMIT_BYTES)
    log.begin()
    assert log.tail(5) == []
    assert log.problem is None
    append(tmp_path / "later.log", b"here\n")
    assert log.tail(5) == ["here"]


def test_a_file_that_somebody_removed_is_followed_when_it_comes_again(file: Path, log: EngineLog) -> None:
    append(file, b"one\n")
    log.poll()
    file.unlink()
    log.poll()
    append(file, b"a new file\n")
    assert log.tail(5) == ["one", "a new file"]


def test_a_file_that_somebody_cut_is_read_from_its_start_again(file: Path, log: EngineLog) -> None:
    append(file, b"one\ntwo\nhalf")
    log.poll()
    file.write_bytes(b"anew\n")
    assert log.tail(5) == ["one", "two", "half", "anew"]


def test_a_folder_in_the_files_place_is_a_problem_with_words(tmp_path: Path) -> None:
    (tmp_path / "engine.log").mkdir()
    log = EngineLog(tmp_path / "engine.log", LIMIT_BYTES)
    log.poll()
    assert log.problem == "the engine's log cannot be kept: Is a directory"


def test_a_file_that_grew_too_long_is_kept_beside_and_begun_anew(file: Path, log: EngineLog) -> None:
    content = b"".join(b"line %d\n" % number for number in range(8000))
    assert len(content) > LIMIT_BYTES
    append(file, content)
    log.poll()
    assert rotated(file).read_bytes() == content
    assert file.stat().st_size == 0
    append(file, b"after\n")
    assert log.tail(2) == ["line 7999", "after"]
    assert file.read_bytes() == b"after\n"


def test_half_a_line_is_completed_across_a_rotation(file: Path, log: EngineLog) -> None:
    append(file, b"x\n" * LIMIT_BYTES + b"first half,")
    log.poll()
    assert file.stat().st_size == 0
    append(file, b" second half\n")
    assert log.tail(1) == ["first half, second half"]


def test_what_was_written_between_two_looks_is_in_the_copy_and_in_the_ring(file: Path) -> None:
    log = EngineLog(file, limit_bytes=0)
    for number in range(5):
        append(file, b"line %d\n" % number)
        log.poll()
        assert rotated(file).read_bytes() == b"line %d\n" % number
    assert log.tail(9) == [f"line {number}" for number in range(5)]


def test_a_rotation_loses_nothing_that_a_real_engine_wrote(file: Path, log: EngineLog) -> None:
    program = str(Path(__file__).with_name("line_writer.py"))
    kept = 0
    with subprocess.Popen(
        (sys.executable, program, str(file)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(20):
            child.stdin.write("400\n")
            assert child.stdout.readline()
            size_before = file.stat().st_size
            log.poll()
            if file.stat().st_size < size_before:
                kept += rotated(file).read_bytes().count(b"\n")
        seen = log.tail(RING_LINES)
        child.stdin.close()
    numbers = [int(line.split()[1]) for line in seen]
    assert numbers == list(range(8000 - RING_LINES, 8000))
    assert kept + file.read_bytes().count(b"\n") == 8000
    assert kept > 0
    assert b"\0" not in file.read_bytes()
    assert file.stat().st_size <= 2 * LIMIT_BYTES


def test_rotations_while_the_engine_writes_leave_no_hole_and_no_endless_file(file: Path, log: EngineLog) -> None:
    program = str(Path(__file__).with_name("line_writer.py"))
    with subprocess.Popen(
        (sys.executable, program, str(file)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("40000\n")
        child.stdin.close()
        while child.poll() is None:
            log.poll()
    append(file, b"\nafter\n")
    assert log.tail(1) == ["after"]
    assert b"\0" not in file.read_bytes()
    assert 0 < rotated(file).stat().st_size < 40_000 * 92
    assert file.stat().st_size <= LIMIT_BYTES


def test_a_listener_hears_each_whole_line_once_and_as_it_is_shown(file: Path, log: EngineLog) -> None:
    heard: list[list[str]] = []
    log.on_lines = heard.append
    append(file, b"one\n\x1b[32mtwo\x1b[0m\nthr")
    log.poll()
    append(file, b"ee\n 10%\r100%\n")
    log.poll()
    log.poll()
    assert heard == [["one", "two"], ["three", "100%"]]


def test_a_listener_hears_what_a_rotation_reads(file: Path, log: EngineLog) -> None:
    heard: list[str] = []
    log.on_lines = heard.extend
    lines = [b"%07d" % number for number in range(LIMIT_BYTES // 8 + 100)]
    append(file, b"\n".join(lines) + b"\n")
    log.poll()
    append(file, b"after\n")
    log.poll()
    assert heard == [line.decode() for line in lines] + ["after"]
