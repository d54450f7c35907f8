"""Engine words as flags with values, with and without a catalog of the flags."""

from __future__ import annotations

import pytest

from stoker.plan.written.flags import flags_of
from stoker.records import Catalog, Flag

CATALOG = Catalog(
    engine="vllm",
    version="1",
    source="tests",
    flags=(
        Flag("--tensor-parallel-size", "int", aliases=("-tp", "--tp")),
        Flag("--enable-x", "switch", aliases=("-x",), negated=("--no-enable-x",)),
        Flag("--sizes", "int", many=True),
        Flag("--port", "int"),
        Flag("--host"),
        Flag("--hf-overrides", "json", aliases=("-ho",)),
        Flag("--level", aliases=("-O",)),
    ),
    spellings=("underscores", "prefixes", "equals"),
)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["--a", "b"], {"--a": ("b",)}),
        (["--a=b=c"], {"--a": ("b=c",)}),
        (["--a_b", "c", "--d"], {"--a-b": ("c",), "--d": ()}),
        (["-tp", "2", "-ngl=99"], {"-tp": ("2",), "-ngl": ("99",)}),
        (["m", "--sizes", "1", "2", "-1", "--b", "-.5"], {"--sizes": ("1", "2", "-1"), "--b": ("-.5",)}),
        (["--a", "1", "--a", "2"], {"--a": ("2",)}),
        (["--a", "-", "--b", ""], {"--a": ("-",), "--b": ("",)}),
        (["--a", "b", "$@", "${X[@]}"], {"--a": ("b",)}),
        (["--a", "$X"], {"--a": ("$X",)}),
        (["--a_b.c_d", "e"], {"--a-b.c_d": ("e",), "--a-b": ('{"c_d":"e"}',)}),
        (["--a.b=1", "--a.c", "2"], {"--a.b": ("1",), "--a.c": ("2",), "--a": ('{"b":"1","c":"2"}',)}),
        (
            ["--a", '{"b": 1, "c": {"d": true}, "e": [1, "x"], "f": null}'],
            {
                "--a": ('{"b": 1, "c": {"d": true}, "e": [1, "x"], "f": null}',),
                "--a.b": ("1",), "--a.c.d": ("true",), "--a.e": ("1", "x"), "--a.f": ("null",),
            },
        ),
        (["--a", "{broken"], {"--a": ("{broken",)}),
        (["--a", "[1]"], {"--a": ("[1]",)}),
        ([], {}),
    ],
)  # fmt: skip
def test_flags_without_a_catalog(words: list[str], flags: dict[str, tuple[str, ...]]) -> None:
    assert flags_of(words) == flags


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["-tp", "2", "--tp=4"], {"--tensor-parallel-size": ("4",), "--tp": ("4",)}),
        (["--tensor_parallel_size", "2"], {"--tensor-parallel-size": ("2",), "--tp": ("2",)}),
        (["--tensor-par", "2"], {"--tensor-parallel-size": ("2",), "--tp": ("2",)}),
        (["--h", "2"], {"--h": ("2",)}),
        (["--enable-x", "model", "--port", "1", "2"], {"--enable-x": (), "--port": ("1",)}),
        (["--no-enable-x", "model"], {"--no-enable-x": ()}),
        (["-x", "--sizes", "1", "2"], {"--enable-x": (), "--sizes": ("1", "2")}),
        (["--unheard", "1", "2"], {"--unheard": ("1", "2")}),
        (["--hf_overrides.a", "1"], {"--hf-overrides.a": ("1",), "--hf-overrides": ('{"a":"1"}',)}),
        (["-ho.a", "1"], {"--hf-overrides.a": ("1",), "--hf-overrides": ('{"a":"1"}',)}),
        (["-O3", "model", "-O=2"], {"--level": ("2",)}),
        (["-O3", "model"], {"--level": ("3",)}),
        (["-O.mode=3"], {"--level.mode": ("3",), "--level": ('{"mode":"3"}',)}),
        (["-xO", "model"], {"-xO": ("model",)}),
    ],
)
def test_flags_by_the_catalog(words: list[str], flags: dict[str, tuple[str, ...]]) -> None:
    assert flags_of(words, CATALOG) == flags
