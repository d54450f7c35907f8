"""What an engine's `--help` says, in the two layouts that there are."""

from __future__ import annotations

import argparse
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.facts.engine.help_argparse import parse_argparse_help, read_default, read_deprecation
from stoker.facts.engine.help_llamacpp import parse_llamacpp_help, parse_llamacpp_removed
from stoker.records import Flag

LLAMA = """
----- common params -----

-h,    --help, --usage                  print usage and exit
-t,    --threads N                      number of threads to use (default: -1)
                                        (env: LLAMA_ARG_THREADS)
-fa,   --flash-attn [on|off|auto]       whether to use it ('on', 'off', or 'auto', default: 'auto')
-kvo,  --kv-offload, -nkvo, --no-kv-offload
                                        where the cache goes (default: enabled)
--ui,  --webui, --no-ui, --no-webui     the page (default: enabled)
--no-host                               leaves something out
--split {none,layer,row}                how to split
-ctk,  --cache-type-k TYPE              the type of K
                                        allowed values: f32, f16, q8_0
                                        (default: f16)
--kind none,draft-simple,draft-mtp      kinds, several with commas (default: none)
--temp, --temperature N                 how bold (default: 0.80)
--scale N                               a factor
--range START END                       from here to there
--methods LIST                          which are allowed (default: GET, POST)
--parts N0,N1,N2,...                    shares, default: 1024
--path PATH                             where it lies (default: read from the model)
--thold N                               a threshold (DEPRECATED)
--strict <0|1>                          strict or not (default: same as --strict-other)
--order SEQUENCE                        the order (default: a;b;c)

----- removed -----

--draft, --draft-max N                  the argument has been removed. use --spec-draft-n-max or
                                        --spec-ngram-mod-n-max
--odd N                                 the argument has been removed. use the respective one
"""


def llama(name: str) -> Flag:
    """Returns one flag of the text above."""
    return next(flag for flag in parse_llamacpp_help(LLAMA) if flag.name == name)


def test_llama_cpps_words_are_told_apart() -> None:
    assert llama("--threads") == Flag("--threads", type="int", aliases=("-t",), default=-1)
    assert llama("--usage").aliases == ("--help", "-h")
    assert llama("--kv-offload") == Flag(
        "--kv-offload", type="switch", aliases=("-kvo",), default=True, negated=("--no-kv-offload", "-nkvo")
    )
    assert llama("--webui").negated == ("--no-ui", "--no-webui")
    assert llama("--no-host") == Flag("--no-host", type="switch")


def test_llama_cpps_values_are_found_where_it_lists_them() -> None:
    assert llama("--flash-attn").choices == ("on", "off", "auto")
    assert llama("--split").choices == ("none", "layer", "row")
    assert llama("--cache-type-k").choices == ("f32", "f16", "q8_0")
    assert llama("--kind").choices == ("none", "draft-simple", "draft-mtp")
    assert llama("--strict").choices == ("0", "1")


def test_llama_cpps_defaults_are_values_and_not_sentences() -> None:
    defaults = {flag.name: flag.default for flag in parse_llamacpp_help(LLAMA)}
    assert defaults["--flash-attn"] == "auto"
    assert defaults["--cache-type-k"] == "f16"
    assert defaults["--temperature"] == 0.8
    assert defaults["--parts"] == 1024
    assert defaults["--order"] == "a;b;c"
    assert [defaults[name] for name in ("--path", "--methods", "--strict", "--kind", "--scale")] == [None] * 5


def test_llama_cpps_types_are_told_where_they_can_be() -> None:
    types = {flag.name: flag.type for flag in parse_llamacpp_help(LLAMA)}
    assert (types["--temperature"], types["--scale"], types["--parts"], types["--range"]) == (
        "float",
        "unknown",
        "text",
        "text",
    )
    assert llama("--range").many
    assert llama("--thold").deprecated == "deprecated"


def test_words_that_llama_cpp_only_refuses_are_no_flags() -> None:
    assert parse_llamacpp_removed(LLAMA) == {
        "--draft": "--spec-draft-n-max",
        "--draft-max": "--spec-draft-n-max",
        "--odd": "",
    }
    assert {flag.name for flag in parse_llamacpp_help(LLAMA)}.isdisjoint({"--draft", "--draft-max", "--odd"})


def make_parser() -> argparse.ArgumentParser:
    """Returns a parser with one option of each kind."""
    parser = argparse.ArgumentParser("engine", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    group = parser.add_argument_group("a group of its own")
    group.add_argument("model", nargs="?", help="Not an option.")
    group.add_argument("--tensor-parallel-size", "-tp", "--tp", type=int, default=1, help="How many.")
    group.add_argument("--backend", choices=["triton", "fa3"], help="Which one: --backend triton  (mind the blanks).")
    group.add_argument("--urls", nargs="+", help="Several.")
    group.add_argument("--stops", nargs="*", help="None, or several.")
    group.add_argument("--token", nargs="?", const=True, help="With a value or without.")
    group.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True, help="On or off.")
    group.add_argument("--trust", action="store_true", help="A plain switch.")
    group.add_argument("--share", type=float, default=0.92, metavar="SHARE", help="A number (of memory).")
    group.add_argument("--origins", type=str, default=["*"], help="JSON.")
    group.add_argument("--parser", metavar="{b,a} or name registered in --plugin", help="Open.")
    group.add_argument("--dtype", metavar="['auto', 'fp8']", default="auto", help="Open too.")
    group.add_argument(
        "--old", help="[Deprecated] Use --a-name-that-is-long-enough-to-be-broken-at-one-of-its-hyphens=yes instead."
    )
    group.add_argument("--hidden", help=argparse.SUPPRESS)
    return parser


HELP = {flag.name: flag for flag in parse_argparse_help(make_parser().format_help())}


def test_the_help_of_python_names_every_option_that_it_shows() -> None:
    shown = {action.option_strings[0] for action in make_parser()._actions if action.option_strings}
    assert HELP.keys() == shown - {"-h", "--hidden"} | {"--help"}
    assert HELP["--tensor-parallel-size"] == Flag("--tensor-parallel-size", "unknown", ("--tp", "-tp"), default=1)


def test_the_help_of_python_tells_what_an_option_takes() -> None:
    assert HELP["--backend"].choices == ("triton", "fa3")
    assert {name for name, flag in HELP.items() if flag.many} == {"--urls", "--stops"}
    assert {name for name, flag in HELP.items() if flag.optional} == {"--token", "--stops"}
    assert {name for name, flag in HELP.items() if flag.type == "switch"} == {"--help", "--cache", "--trust"}
    assert HELP["--cache"].negated == ("--no-cache",)


def test_values_that_are_only_named_are_not_all_that_is_taken() -> None:
    assert (HELP["--parser"].named, HELP["--parser"].choices) == (("a", "b"), ())
    assert (HELP["--dtype"].named, HELP["--dtype"].choices) == (("auto", "fp8"), ())
    assert not HELP["--dtype"].optional


def test_the_help_of_python_tells_defaults_as_values() -> None:
    assert (HELP["--share"].default, HELP["--cache"].default, HELP["--trust"].default) == (0.92, True, False)
    assert HELP["--origins"].default == '["*"]'
    assert (HELP["--backend"].default, HELP["--dtype"].default) == (None, "auto")


def test_a_name_that_was_broken_at_a_hyphen_is_whole_again() -> None:
    assert HELP["--old"].deprecated == "use --a-name-that-is-long-enough-to-be-broken-at-one-of-its-hyphens=yes"


def test_vllms_pairs_of_enable_and_disable_are_opposites() -> None:
    [flag] = parse_argparse_help(
        "options:\n  --enable-lora, --disable-lora\n                        Adapters. (default: None)\n"
    )
    assert flag.name == "--enable-lora"
    assert flag.negated == ("--disable-lora", "--no-enable-lora"), "the last is taken, but not shown"


def test_both_ways_of_python_to_write_a_value_once_or_for_each_word_are_read() -> None:
    old, new = "  -tp N, --tensor N     How many.\n", "  -tp, --tensor N       How many.\n"
    assert parse_argparse_help(old) == parse_argparse_help(new) == (Flag("--tensor", "unknown", ("-tp",)),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None), ("True", True), ("0.5", 0.5), ("-1", -1), ("auto", "auto"), ("'a b'", "a b"), ("", None),
        ("[1, 2]", "[1, 2]"), ("{'a': 1}", '{"a": 1}'), ("set()", None), ("Config(a=1)", None), ("Enum.VALUE", None),
        ("twice as much", None), ("{1: {2}}", None), ("(1, 'a')", '[1, "a"]'), ("b'x'", None), ("1j", None), ("...", None),
    ],
)  # fmt: skip
def test_a_default_is_a_value_or_unknown(text: str, value: str | float | bool | None) -> None:
    assert read_default(text) == value


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Deprecated: use --new instead.", "use --new"),
        ("[DEPRECATED] Use `--new=auto` instead", "use --new=auto"),
        ("Note: --old is deprecated now. Please use --new instead.", "use --new"),
        ("Deprecated alias for --new.", "use --new"),
        ("(Deprecated: use --x-{a,b}=off)", "use --x-{a,b}=off"),
        ("This option is deprecated and will go.", ""),
        ("Deprecated.", "deprecated"),
        ("Takes what --old, which is deprecated, took; use --new.", ""),
        ("", ""),
    ],
)
def test_what_an_engine_says_of_old_flags_is_understood(told: str, said: str) -> None:
    assert read_deprecation(told) == said


PIECES = st.sampled_from(
    ["  --flag", "  -f", "-f,   --flag", " N", " {a,b}", " [X ...]", "  ", "\n", "\t", "(default: ", ")", "'", "[", "{",
     "--", "-", ", ", "text", "use --x", "Deprecated", "the argument has been removed. ", "\x00", "é", "default: 'a", "]"]
)  # fmt: skip
GARBAGE = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join))


@given(GARBAGE)
def test_no_text_upsets_a_reader_of_help(printed: str) -> None:
    for flag in (*parse_argparse_help(printed), *parse_llamacpp_help(printed)):
        words = (flag.name, *flag.aliases, *flag.negated)
        assert all(re.fullmatch(r"--?[a-zA-Z][\w.-]*", word) for word in words)
    parse_llamacpp_removed(printed)


WORDS = st.from_regex(r"--[a-z]{2,8}(-[a-z]{2,8}){0,3}", fullmatch=True).filter(
    lambda word: not word.startswith(("--no-", "--help"))
)
OPTIONS = st.dictionaries(
    WORDS,
    st.sampled_from([{"action": "store_true"}, {"nargs": "+"}, {"choices": ["a", "b-c"]}, {"type": int, "default": 3}, {}]),
    max_size=12,
)


@given(OPTIONS, st.text(st.characters(codec="ascii", exclude_characters="%"), max_size=60))
def test_whatever_argparse_prints_is_read_back(options: dict[str, dict[str, object]], told: str) -> None:
    parser = argparse.ArgumentParser(add_help=False)
    for word, kind in options.items():
        parser.add_argument(word, help=f"Text. {' '.join(told.split())}", **kind)  # type: ignore[arg-type]
    flags = {flag.name: flag for flag in parse_argparse_help(parser.format_help())}
    for word, kind in options.items():
        assert (flags[word].type == "switch") == ("action" in kind)
        assert flags[word].many == ("nargs" in kind)
        assert flags[word].choices == tuple(kind.get("choices", ()))  # type: ignore[arg-type]
