"""Logs of any form: what is found in them is what is there, in the line where it stands, and in little memory."""

from __future__ import annotations

import io
import random
import tracemalloc

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.cli.diagnose_text import diagnosis_text
from stoker.diagnose.anchors import find_anchors
from stoker.diagnose.blocks import BLOCK_BYTES, read_blocks
from stoker.diagnose.redact import hide_secrets
from stoker.diagnose.scan import Scanner, make_sign
from stoker.flows.diagnose import Known, diagnose_source
from stoker.records import Diagnosis
from stoker.supervise.logs import PROBES_BEGIN, PROBES_END

FAULT = "OSError: [Errno 98] Address already in use"
VLLM = "(APIServer pid=101) INFO 11-20 08:03:39 [utils.py:233] non-default args: {'model': '/models/m'}"


class Endless:
    """A source of so many bytes that are never all in memory."""

    def __init__(self, piece: bytes, size: int, last: bytes) -> None:
        self._piece, self._left, self._last = piece, size, last

    def read(self, size: int, /) -> bytes:
        """Returns the next bytes."""
        if self._left <= 0:
            last, self._last = self._last, b""
            return last
        given = (self._piece * (size // len(self._piece) + 1))[: min(size, self._left)]
        self._left -= len(given)
        return given


def diagnose(log: bytes) -> Diagnosis:
    return diagnose_source(io.BytesIO(log), "log", Known({}))


def rules(told: Diagnosis) -> list[str]:
    return [one.rule for one in told.findings]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
def test_the_encoding_is_found_out(encoding: str) -> None:
    text = f"{VLLM}\n" + "a line like any other\n" * 9 + f"\xfcber {FAULT}\n"
    told = diagnose(text.encode(encoding))
    assert rules(told) == ["port-taken"]
    assert told.findings[0].evidence[0].line == 11


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_are_counted_as_an_editor_counts_them(end: bytes) -> None:
    told = diagnose(end.join([b"one", b"two", b"", FAULT.encode(), b"five"]))
    assert (told.lines, told.findings[0].evidence[0].line) == (5, 4)


def test_colours_and_progress_bars_hide_nothing() -> None:
    bar = b"\r".join(b"Loading %d%%" % share for share in range(100))
    told = diagnose(b"first\n" + bar + b"\r\x1b[31mOSError\x1b[0m: [Errno 98] \x1b[1mAddress already in use\x1b[0m\nlast\n")
    assert [(line.line, line.text) for line in told.findings[0].evidence] == [(2, FAULT)]


def test_docker_log_files_are_read_as_they_lie() -> None:
    told = diagnose(b'{"log":"OSError: [Errno 98] Address already in use\\n","stream":"stderr","time":"2026-11-20"}\n')
    assert rules(told) == ["port-taken"]


def test_a_sign_across_the_border_of_two_blocks_is_found() -> None:
    for before in range(BLOCK_BYTES - len(FAULT) - 2, BLOCK_BYTES + 2, 15):
        told = diagnose(b"x" * before + FAULT.encode() + b"\nrest\n")
        assert rules(told) == ["port-taken"], before


def test_a_line_without_end_takes_no_memory() -> None:
    source = Endless(b"going on and on, ", 24 * 2**20, FAULT.encode())
    tracemalloc.start()
    told = diagnose_source(source, "log", Known({}))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rules(told) == ["port-taken"]
    assert told.lines == 1
    assert peak_bytes < 20 * 2**20


def test_junk_is_passed_over() -> None:
    junk = random.Random(3).randbytes(3 * 2**20)
    told = diagnose(junk + b"\n" + FAULT.encode() + b"\n" + junk)
    assert rules(told) == ["port-taken"]
    assert told.findings[0].evidence[0].line == junk.count(b"\n") + 2


def test_of_nothing_at_all_nothing_is_known() -> None:
    told = diagnose(b"")
    assert (told.findings, told.unknown, told.noise, told.lines, told.engine) == ((), (), (), 0, None)
    assert told.breaks_off and told.collect


def test_a_first_launch_that_says_nothing_wrong_is_told_of_though_it_is_not_ready() -> None:
    """Where a launch begins Stoker writes a line; what stands before the first one is no launch."""
    first = f"stoker: launch 1 of coder begins\n{VLLM}"
    assert diagnose(first.encode()).engine == "vllm"
    later = f"{first}\nstoker: launch 2 of coder begins\nnothing yet"
    assert (diagnose(later.encode()).engine, diagnose(later.encode()).starts) == ("vllm", 2)
    older = f"{VLLM}\nstoker: launch 1 of coder begins\nnothing yet"
    assert diagnose(older.encode()).engine == "vllm"


def test_a_log_that_breaks_off_without_a_fault_ends_with_its_last_lines() -> None:
    """Of an unknown engine nobody knows which line says that it is ready, so it is not called healthy either."""
    said = [f"step {number} of {number}" for number in range(1, 9)]
    for first in ("frobd 1.2 starting", VLLM):
        told = diagnose("\n".join([first, *said, "", "\x1b[1mbinding\x1b[0m with key hf_AbCdEfGhIjKlMnOpQr"]).encode())
        assert told.findings == ()
        assert [line.line for line in told.unknown] == [6, 7, 8, 9, 11]
        assert told.unknown[-1].text == "binding with key ***"
        assert told.breaks_off and told.collect


def test_the_last_lines_are_found_across_the_border_of_two_blocks() -> None:
    lines = [f"{number} {'x' * 90}" for number in range(BLOCK_BYTES // 90)]
    told = diagnose("\n".join([*lines, "the last"]).encode())
    assert [line.line for line in told.unknown] == list(range(len(lines) - 3, len(lines) + 2))


def test_a_start_that_became_ready_and_goes_on_is_no_fault() -> None:
    told = diagnose(f"{VLLM}\nINFO:     Application startup complete.\nINFO: all is well\n".encode())
    assert (told.findings, told.unknown, told.collect, told.breaks_off) == ((), (), (), False)


def test_a_flood_is_counted_and_shown_by_its_first_lines() -> None:
    told = diagnose((FAULT + "\n").encode() * 5000)
    [cause] = told.findings
    assert [line.line for line in cause.evidence] == [1, 2, 3]
    assert cause.times >= 20


def test_a_fault_after_a_flood_of_like_lines_is_found() -> None:
    flood = b"".join(b"request %d ended with error nothing of note\n" % number for number in range(100_000))
    told = diagnose(flood + FAULT.encode())
    assert rules(told) == ["port-taken"]
    assert told.findings[0].evidence[0].line == 100_001


LINES = st.lists(st.sampled_from(["a dull line", "frobnicated the wibble", "Frobnicated the wobble", "x" * 99, "", "7"]))


@settings(max_examples=60)
@given(LINES, st.integers(1, 40))
def test_passing_over_lines_loses_none_that_a_pattern_finds(lines: list[str], times: int) -> None:
    sign = make_sign("rule", "r", r"(?i)frobnicated the w[io]bble")
    numbered = [line for line in lines for _ in range(times)]
    log = "\n".join(numbered).encode()
    scanner = Scanner([sign])
    found = {hit.line for block in read_blocks(io.BytesIO(log)) for hit in scanner.scan(block)}
    first = {
        next((n for n, one in enumerate(numbered, 1) if one == text), 0) for text in {*lines} if sign.pattern.search(text)
    }
    assert first <= found
    assert all(sign.pattern.search(numbered[line - 1]) for line in found)


@pytest.mark.parametrize(
    ("pattern", "anchors"),
    [
        (r"Address already in use", ("address already in use",)),
        (r"(?:CUDA|torch\.)?(?:OutOfMemoryError|out of memory)", ("outofmemoryerror", "out of memory")),
        (r"(?:optional letters)?needed letters", ("needed letters",)),
        (r"(?:maybe)*\d+ [a-z]+", ()),
        (r"a.b|something", ()),
        (r"(?i)SHOUTED", ("shouted",)),
    ],
)
def test_anchors_are_letters_that_no_match_lacks(pattern: str, anchors: tuple[str, ...]) -> None:
    assert find_anchors(pattern) == anchors


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("--api-key s3cr3tvalue --port 1", "s3cr3tvalue"),
        ("non-default args: {'api_key': ['s3cr3tvalue'], 'port': 1}", "s3cr3tvalue"),
        ("HF_TOKEN=s3cr3tvalue vllm serve", "s3cr3tvalue"),
        ("token hf_AbCdEfGhIjKlMnOpQr is invalid", "hf_AbCdEfGhIjKlMnOpQr"),
        ("Authorization: Bearer s3cr3tvalue", "s3cr3tvalue"),
        ("GET https://me:s3cr3tvalue@hub/x", "s3cr3tvalue"),
        ('{"password": "s3cr3tvalue"}', "s3cr3tvalue"),
        ('File "/home/jane.doe/x.py", line 3', "jane.doe"),
    ],
)
def test_secrets_are_taken_out(line: str, secret: str) -> None:
    assert secret not in hide_secrets(line)


@pytest.mark.parametrize(
    "line", ["max_tokens=512", "tokenizer='./m'", "token=None", "tokens: 17", "KeyError: 'tokenizer.json'"]
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert hide_secrets(line) == line


PROVOKED = b"E send_error: error: request (8332 tokens) exceeds the available context size (4096 tokens)\n"
BEGIN, END = f"{PROBES_BEGIN}\n".encode(), f"{PROBES_END}\n".encode()


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (BEGIN + PROVOKED + END, []),
        (BEGIN + PROVOKED + END + PROVOKED, ["prompt-beyond-context"]),
        (PROVOKED + BEGIN + PROVOKED + END, ["prompt-beyond-context"]),
        (BEGIN + PROVOKED, ["prompt-beyond-context"]),  # whether the engine outlived it is not known
        (BEGIN + PROVOKED + BEGIN + END, ["prompt-beyond-context"]),
        (BEGIN + f"{FAULT}\n".encode() + END, ["port-taken"]),  # which no probe brings about
        (b"it says: " + BEGIN + PROVOKED + b"it says: " + END, ["prompt-beyond-context"]),
    ],
)
def test_what_stokers_own_probes_provoke_is_no_finding_once_the_engine_outlived_it(log: bytes, found: list[str]) -> None:
    assert rules(diagnose(log)) == found


def test_two_signs_of_a_rule_in_one_line_are_one_time() -> None:
    [cause] = diagnose(PROVOKED.replace(b"request (", b"the request exceeds the available context size: request (")).findings
    assert cause.times == 1


def test_one_time_more_is_said_in_the_singular() -> None:
    said = [click.unstyle(diagnosis_text(diagnose(PROVOKED * times))).splitlines() for times in (4, 5)]
    assert "     and 1 more time" in said[0]
    assert "     and 2 more times" in said[1]
