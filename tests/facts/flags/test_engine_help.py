"""Asking an installed engine for its flags, and remembering what it said."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from stoker.box import LocalBox, RecordedBox
from stoker.errors import StokerError
from stoker.facts.engine.catalogs import load_catalog
from stoker.facts.engine.flags import find_flag
from stoker.facts.engine.help import (
    parse_help,
    program_digest,
    read_engine_flags,
    read_image_flags,
    render_image_help,
)
from stoker.records import Catalog, Environment
from support import fails

ENGINE = """#!{python}
import argparse, pathlib, sys
pathlib.Path(__file__ + ".calls").open("a").write("x")
parser = argparse.ArgumentParser()
parser.add_argument("--device-memory", "--gpu-memory", type=float)
parser.add_argument("--tp-size", "--tensor-parallel-size", "--tp", type=int)
parser.add_argument("--made-up", choices=["a", "b"])
parser.parse_args()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that prints the help of a Python engine, and counts how often it was asked."""
    file = tmp_path / "engine"
    file.write_text(ENGINE.format(python=sys.executable))
    file.chmod(0o755)
    return file


def calls(program: Path) -> int:
    """Returns how often the program was run."""
    return len(Path(f"{program}.calls").read_text())


def ask(program: Path, cache: Path, version: str | None = "0.5.16") -> Catalog:
    """Returns its flags."""
    return read_engine_flags(LocalBox(), "sglang", (str(program),), version, cache)


def test_an_engine_is_asked_for_its_own_flags(program: Path, tmp_path: Path) -> None:
    catalog = ask(program, tmp_path / "cache")
    made_up = find_flag(catalog, "--made-up")
    assert made_up is not None
    assert (made_up.flag.choices, made_up.flag.type) == (("a", "b"), "unknown")
    assert (catalog.engine, catalog.version, catalog.source) == ("sglang", "0.5.16", f"{program} --help")


def test_names_and_types_are_those_of_the_nearest_shipped_version(program: Path, tmp_path: Path) -> None:
    known = find_flag(ask(program, tmp_path), "--tp")
    assert known is not None
    assert (known.flag.name, known.flag.type) == ("--tensor-parallel-size", "int")


def test_an_engine_of_an_unknown_version_is_asked_too(program: Path, tmp_path: Path) -> None:
    catalog = ask(program, tmp_path, version=None)
    assert catalog.version == "unknown"
    assert find_flag(catalog, "--made-up") is not None


def test_an_engine_is_asked_once_while_it_is_the_same(program: Path, tmp_path: Path) -> None:
    first, second = ask(program, tmp_path), ask(program, tmp_path)
    assert second == first
    assert calls(program) == 1
    ask(program, tmp_path, version="0.5.18")
    assert calls(program) == 2
    os.utime(program, (1, 1))
    ask(program, tmp_path)
    assert calls(program) == 3


@pytest.mark.parametrize("broken", [b"", b"{", b'{"engine":"sglang","flags":3}'])
def test_a_broken_memory_is_asked_for_again(program: Path, tmp_path: Path, broken: bytes) -> None:
    cache = tmp_path / "cache"
    first = ask(program, cache)
    [file] = cache.iterdir()
    file.write_bytes(broken)
    assert ask(program, cache) == first
    assert calls(program) == 2
    assert ask(program, cache) == first
    assert calls(program) == 2


def test_a_folder_that_cannot_be_written_is_no_error(program: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert ask(program, tmp_path / "file" / "below").flags


def test_a_program_that_fails_is_an_error_that_names_it(tmp_path: Path) -> None:
    with fails(StokerError, "did not print the flags of sglang", "/nonexistent --help"):
        ask(Path("/nonexistent"), tmp_path)
    with fails(StokerError, "did not print the flags of sglang"):
        ask(Path("/usr/bin/false"), tmp_path)


def test_a_program_that_is_no_engine_is_told_from_one(tmp_path: Path) -> None:
    with fails(StokerError, "names no flags", "is it vllm's server?"):
        read_engine_flags(LocalBox(), "vllm", ("/bin/echo",), "0.26.0", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_llama_cpp_is_read_in_its_own_layout() -> None:
    printed = "-c,    --ctx-size N                     how much (default: 0)\n--draft N                               the argument has been removed. use --new\n"  # noqa: E501
    catalog = parse_help("llamacpp", "11549", printed, "a text")
    assert [flag.name for flag in catalog.flags] == ["--ctx-size"]
    assert catalog.gone == {"--draft": "--new"}
    assert catalog.spellings == load_catalog("llamacpp", "b11549").spellings


@pytest.mark.parametrize(("engine", "version"), [("sglang", "0.5.23"), ("vllm", "0.33.0"), ("llamacpp", "b11549")])
def test_a_live_engine_takes_the_same_spellings_as_a_shipped_one(engine: str, version: str) -> None:
    live, shipped = parse_help(engine, version, "", ""), load_catalog(engine, version)
    assert sorted(live.spellings) == sorted(shipped.spellings)


def test_the_digest_is_that_of_words_file_and_version(program: Path) -> None:
    words = (str(program), "serve")
    digest = program_digest(words, "1")
    assert digest == program_digest(words, "1")
    others = {program_digest(words[:1], "1"), program_digest(words, "2"), program_digest(("/nonexistent", "serve"), "1")}
    assert digest not in others
    assert len(others) == 3
    program.write_text(program.read_text() + "#")
    assert program_digest(words, "1") != digest


IMAGE = Environment("image", "lmsysorg/sglang:dev", digest="sha256:ab", runtime="podman")
SERVER = ("python3", "-m", "sglang.launch_server")


class ImageBox(RecordedBox):
    """A machine whose container engine prints one help text for all images, and counts how often."""

    calls = 0

    def run(self, argv: Sequence[str], limit_s: float = 0) -> str | None:
        """Prints the help of the engine in an image."""
        self.calls += 1
        return "options:\n  --tp-size TP_SIZE     how many\n  --made-up {a,b}       what\n" if argv[1] == "run" else None


def test_an_image_is_asked_without_giving_it_anything() -> None:
    assert render_image_help("sglang", IMAGE, SERVER) == (
        "podman", "run", "--rm", "--pull", "never", "--network", "none", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--entrypoint", "python3", "lmsysorg/sglang:dev",
        "-m", "sglang.launch_server", "--help",
    )  # fmt: skip


def test_an_image_is_asked_once_while_its_digest_is_the_same(tmp_path: Path) -> None:
    box = ImageBox(tmp_path)
    first = read_image_flags(box, "sglang", IMAGE, SERVER, None, tmp_path)
    assert find_flag(first, "--made-up") is not None
    renamed = msgspec.structs.replace(IMAGE, name="another/name:1")
    assert read_image_flags(box, "sglang", renamed, SERVER, None, tmp_path) == first
    assert box.calls == 1
    for image, program, version in (
        (msgspec.structs.replace(IMAGE, digest="sha256:cd"), SERVER, None),
        (IMAGE, ("sglang", "serve"), None),
        (IMAGE, SERVER, "0.5.18"),
    ):
        read_image_flags(box, "sglang", image, program, version, tmp_path)
    assert box.calls == 4
