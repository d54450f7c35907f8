"""All that is kept of a log is searched, whatever it holds, and no more of it comes back than was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.diagnose.blocks import BLOCK_BYTES
from stoker.errors import WrongUse
from stoker.flows.log_search import LONGEST_TEXT, search_log
from stoker.flows.logs import fold_noise

HEALTH = '127.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "demo.log"


def found(file: Path, text: str, most: int = 100, folds: bool = False) -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in search_log(file, text, most, folds).lines]


def test_lines_are_found_whatever_their_case_and_numbered(file: Path) -> None:
    file.write_text("loads\nCUDA Error here\nready\ncuda error again")
    assert found(file, "cuda ERROR") == [(2, "CUDA Error here"), (4, "cuda error again")]
    told = search_log(file, "nothing like it", 9, folds=False)
    assert (told.lines, told.found, told.read_lines) == ((), 0, 4)


def test_the_former_file_comes_first_and_counts_on(file: Path) -> None:
    file.with_name("demo.log.1").write_text("old fault\nold end\n")
    file.write_text("new fault\n")
    assert found(file, "fault") == [(1, "old fault"), (3, "new fault")]


def test_the_last_ones_come_back_and_all_are_counted(file: Path) -> None:
    file.write_text("".join(f"step {number}\n" for number in range(1000)))
    told = search_log(file, "STEP", 2, folds=False)
    assert ([one.text for one in told.lines], told.found) == (["step 998", "step 999"], 1000)


def test_a_log_of_many_blocks_is_searched_to_its_ends(file: Path) -> None:
    filler = "x" * 1000 + "\n"
    count = 3 * BLOCK_BYTES // len(filler)
    file.write_text("needle first\n" + filler * count + "needle last\n")
    told = search_log(file, "needle", 9, folds=False)
    assert [(one.line, one.text) for one in told.lines] == [(1, "needle first"), (count + 2, "needle last")]
    assert told.read_lines == count + 2


def test_colours_and_progress_bars_are_searched_as_they_look(file: Path) -> None:
    file.write_bytes(b"\x1b[31mfa\x1b[0mult\n1 %\r50 %\r100 % loaded\n")
    assert found(file, "fault") == [(1, "fault")]
    assert found(file, "50 %") == []
    assert found(file, "100 %") == [(2, "100 % loaded")]


def test_letters_of_other_tongues_are_found_in_either_case(file: Path) -> None:
    file.write_text("\u00c9CHEC du mod\u00e8le\n")
    assert found(file, "\u00e9chec") == [(1, "\u00c9CHEC du mod\u00e8le")]


def test_noise_is_folded_and_counted(file: Path) -> None:
    file.write_text(f"{HEALTH}\nGET /v1/chat/completions fails\n{HEALTH}\n")
    told = search_log(file, "get /", 9, folds=True)
    assert ([one.line for one in told.lines], told.folded) == ([2], 2)
    assert [line for line, _ in found(file, "get /")] == [1, 2, 3]
    tail = fold_noise([HEALTH, "a", HEALTH, "b"], 1)
    assert (tail.lines, tail.folded) == (("b",), 2)


def test_secrets_stay_in_the_file(file: Path) -> None:
    file.write_text("starts with --api-key sk-very-secret-word-1234567890\n")
    [(_, shown)] = found(file, "starts")
    assert "very-secret" not in shown


def test_a_log_that_is_not_there_holds_nothing(file: Path) -> None:
    assert search_log(file, "x", 5, folds=True).read_lines == 0


def test_a_text_has_a_limit(file: Path) -> None:
    with pytest.raises(WrongUse, match="letters long"):
        search_log(file, "x" * (LONGEST_TEXT + 1), 5, folds=False)
