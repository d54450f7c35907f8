"""Which flag a word means, and which one was meant."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.facts.engine.catalogs import known_engines, known_versions, load_all, load_catalog
from stoker.facts.engine.flags import find_flag, find_lifetimes, keep_names, search_flags, suggest_flag
from stoker.records import Catalog, Flag, Spelling
from stoker.records.flags import HowFound, Lifetime, Suggestion

FLAGS = (
    Flag("--context-length", type="int"),
    Flag("--enable-cache", type="switch", aliases=("-ec",), negated=("--no-enable-cache",)),
    Flag("--speculative-config", type="json", aliases=("-sc",)),
    Flag("--tensor-parallel-size", type="int", aliases=("--tp", "-tp"), default=1),
    Flag("--optimization-level", type="int", aliases=("-O",)),
    Flag("--verbose", type="switch", aliases=("-v",)),
)
ALL: tuple[Spelling, ...] = ("equals", "underscores", "prefixes", "dotted")


def make_catalog(*flags: Flag, version: str = "2", spellings: Sequence[Spelling] = ALL, **more: dict[str, str]) -> Catalog:
    """Returns a catalog of an engine that nobody knows."""
    return Catalog("engine", version, "made up", flags or FLAGS, tuple(spellings), **more)


@pytest.mark.parametrize(
    ("word", "name", "how"),
    [
        ("--context-length", "--context-length", "name"),
        ("--tp", "--tensor-parallel-size", "alias"),
        ("-tp", "--tensor-parallel-size", "alias"),
        ("--no-enable-cache", "--enable-cache", "negated"),
        ("--no_enable_cache", "--enable-cache", "negated"),
        ("--context_length", "--context-length", "underscores"),
        ("--context", "--context-length", "prefix"),
        ("--ten", "--tensor-parallel-size", "prefix"),
        ("--speculative-config.model", "--speculative-config", "dotted"),
        ("-sc.method", "--speculative-config", "dotted"),
        ("-sc.method=ngram", "--speculative-config", "dotted"),
        ("-O3", "--optimization-level", "attached"),
        ("-O=3", "--optimization-level", "alias"),
    ],
)
def test_a_word_is_the_flag_that_the_parser_takes_it_for(word: str, name: str, how: HowFound) -> None:
    found = find_flag(make_catalog(), word)
    assert found is not None
    assert (found.flag.name, found.how) == (name, how)


def test_a_value_that_is_part_of_the_word_is_told_apart() -> None:
    catalog = make_catalog()
    words = ("--context-length=4096", "--speculative-config.a.b=1", "-O3", "--tp", "--context-length=a=b")
    found = [find_flag(catalog, word) for word in words]
    values = [(one.value, one.key) for one in found if one]
    assert values == [("4096", ""), ("1", "a.b"), ("3", ""), (None, ""), ("a=b", "")]


@pytest.mark.parametrize(
    "word",
    ["--nope", "--", "-", "", "-x", "--verbose.key", "--enable-cache.on", "--e=", "-v3", "tp", "--t=1x=", "-tp2", "-v.key"],
)
def test_other_words_mean_no_flag(word: str) -> None:
    catalog = make_catalog(*FLAGS, Flag("--enable-more"), Flag("--too"))
    assert find_flag(catalog, word) is None


@pytest.mark.parametrize(
    "word", ["--context-length=1", "--context_length", "--context", "--speculative-config.model", "-O3"]
)
def test_a_parser_that_takes_exact_words_takes_nothing_else(word: str) -> None:
    assert find_flag(make_catalog(spellings=()), word) is None


def test_an_ambiguous_prefix_means_nothing() -> None:
    assert find_flag(make_catalog(Flag("--context-length"), Flag("--context-size")), "--context") is None


@given(st.text(max_size=30), st.sampled_from(["llamacpp", "sglang", "vllm"]))
def test_no_word_upsets_the_search(word: str, engine: str) -> None:
    catalog = load_catalog(engine, known_versions(engine)[-1])
    found = find_flag(catalog, word)
    assert found is None or found.flag in catalog.flags
    suggest_flag(catalog, word, load_all(engine))


@pytest.mark.parametrize("engine", known_engines())
def test_every_word_of_a_shipped_catalog_is_found_in_it(engine: str) -> None:
    catalog = load_all(engine)[-1]
    for flag in catalog.flags:
        for word in (flag.name, *flag.aliases, *flag.negated):
            found = find_flag(catalog, word)
            assert found is not None
            assert found.flag is flag


# Each as the version's own parser takes or refuses it.
@pytest.mark.parametrize("version", known_versions("vllm"))
def test_vllm_takes_its_level_of_optimisation_in_short(version: str) -> None:
    catalog = load_catalog("vllm", version)
    for word in ("-O3", "-O=3", "-O", "-O.level=3", "-Odecode"):
        found = find_flag(catalog, word)
        assert found is not None
        assert found.flag.name == "--optimization-level"
    for word in ("-cc.mode", "-cc.mode=3", "-sc.method", "-ac.backend=X", "-q=fp8", "-qfp8", "-n4", "-asc=2"):
        assert find_flag(catalog, word), word
    for word in ("-tp2", "-pp2", "-dp2", "-epx"):
        assert find_flag(catalog, word) is None, word


def test_a_suggestion_shares_more_than_letters_with_what_was_written() -> None:
    last = load_catalog("vllm", "0.33.0")
    for word in ("--enable-flashinfer-mla", "--enable-thinking", "--max-tokens", "--foo"):
        assert suggest_flag(last, word, load_all("vllm")) is None, word
    for word, meant in (
        ("--max-modle-len", "--max-model-len"), ("--kv-dtype", "--kv-cache-dtype"), ("--enforce-egaer", "--enforce-eager"),
        ("--gpu-mem-utilization", "--gpu-memory-utilization"), ("--served-name", "--served-model-name"),
        ("--disable-prefix-cache", "--disable-prefix-caching"), ("--enable-prefix-cache", "--enable-prefix-caching"),
    ):  # fmt: skip
        said = suggest_flag(last, word, load_all("vllm"))
        assert said is not None
        assert said.word == meant


def test_a_slip_of_the_pen_gets_the_flag_that_is_most_like_it() -> None:
    said = suggest_flag(make_catalog(), "--contxt-length=4096")
    assert said == Suggestion("--context-length", "it is spelled most like it")
    assert suggest_flag(make_catalog(), "--tensor_paralel_size") == Suggestion("--tensor-parallel-size", said.because)
    assert suggest_flag(make_catalog(), "--wibble-wobble-zzz") is None


def test_an_old_name_gets_the_new_one_that_the_engine_names() -> None:
    old = make_catalog(Flag("--old", deprecated="use --new"), Flag("--new"), version="1")
    new = make_catalog(Flag("--new"), Flag("--bold"))
    assert suggest_flag(new, "--old", [old, new]) == Suggestion("--new", "engine 1 says so")


def test_a_word_that_is_only_there_to_be_refused_gets_its_replacement() -> None:
    catalog = make_catalog(Flag("--spec-draft-n-max"), gone={"--draft-max": "--spec-draft-n-max"})
    said = suggest_flag(catalog, "--draft-max")
    assert said is not None
    assert said.word == "--spec-draft-n-max"


def test_an_old_name_gets_the_alias_that_is_still_there() -> None:
    old = make_catalog(Flag("--tensor-size", aliases=("-ts",)), version="1")
    new = make_catalog(Flag("--shards", aliases=("-ts",)), Flag("--tensor-seize"))
    assert suggest_flag(new, "--tensor-size", [old, new]) == Suggestion("-ts", "both mean the same in engine 1")


def test_a_flag_of_another_version_gets_no_lookalike() -> None:
    newer = make_catalog(Flag("--context-lengths"), version="3")
    assert suggest_flag(make_catalog(), "--context-lengths", [make_catalog(), newer]) is None


def test_the_real_catalogs_know_what_became_of_a_flag() -> None:
    last = load_catalog("sglang", "0.5.23")
    said = suggest_flag(last, "--nsa-prefill-backend", load_all("sglang"))
    assert said is not None
    assert said.word == "--dsa-prefill-backend"
    said = suggest_flag(load_catalog("vllm", "0.26.0"), "--gpu-memory-utilisation")
    assert said is not None
    assert said.word == "--gpu-memory-utilization"


def test_since_and_until_are_told_only_where_they_are_known() -> None:
    versions = [
        make_catalog(Flag("--always"), Flag("--gone", aliases=("-g",)), version="1"),
        make_catalog(Flag("--always"), Flag("--gone"), Flag("--brief", negated=("--no-brief",)), version="2"),
        make_catalog(Flag("--always"), Flag("--new"), version="3"),
    ]
    assert find_lifetimes(versions) == {
        "--always": Lifetime(None, None),
        "--gone": Lifetime(None, "2"),
        "-g": Lifetime(None, "1"),
        "--brief": Lifetime("2", "2"),
        "--no-brief": Lifetime("2", "2"),
        "--new": Lifetime("3", None),
    }


def test_a_new_alias_does_not_rename_a_flag() -> None:
    before = make_catalog(Flag("--gpu-memory", aliases=("-gm",)), Flag("--b"))
    after = make_catalog(Flag("--device-memory", type="float", aliases=("--gpu-memory", "-gm")), Flag("--b"), Flag("--c"))
    kept = keep_names(after, before)
    assert [flag.name for flag in kept.flags] == ["--b", "--c", "--gpu-memory"]
    assert kept.flags[2] == Flag("--gpu-memory", type="float", aliases=("--device-memory", "-gm"))
    assert keep_names(after, None).flags == tuple(msgspec.structs.replace(flag) for flag in sorted(after.flags, key=str))


def test_the_search_looks_at_words_and_values() -> None:
    catalog = make_catalog(*FLAGS, Flag("--backend", choices=("triton", "fa3"), named=("other",)))
    assert [flag.name for flag in search_flags(catalog, "TRITON")] == ["--backend"]
    assert [flag.name for flag in search_flags(catalog, "--tp")] == ["--tensor-parallel-size"]
    assert [flag.name for flag in search_flags(catalog, "no_enable")] == ["--enable-cache"]
    assert search_flags(catalog, "nothing-like-it") == ()
