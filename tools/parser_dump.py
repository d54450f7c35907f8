"""Prints the options of an engine's own argument parser: `parser_dump.py ENGINE VERSION WHEEL`; run by `catalog.py`.

A process of its own for each version: it imports code that is not ours.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import importlib
import json
import re
import string
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from stand_ins import Lenient, StandInModule, is_stand_in, stand_in_for
from wheel_source import open_wheel

from stoker.facts.engine.help_argparse import choose_name, read_deprecation
from stoker.records import Catalog, Flag, FlagType, Spelling

VLLM_PARSERS = ("common", "launchers", "openai")  # where the server's parser has lived, the newest place first

DECLARES = r"^sglang\.srt\.(server_args|arg_groups)|^vllm\.(config|engine\.arg_utils|envs)\b|cli_args$|argparse_utils$"


def sglang_parser() -> argparse.ArgumentParser:
    """Returns the parser of `python -m sglang.launch_server`."""
    arguments = importlib.import_module("sglang.srt.server_args").ServerArgs
    parser = argparse.ArgumentParser()
    arguments.add_cli_args(parser)
    return parser


def vllm_parser() -> argparse.ArgumentParser:
    """Returns the parser of `vllm serve`, as on a machine with CUDA."""
    platforms: Any = importlib.import_module("vllm.platforms")
    platforms._current_platform = importlib.import_module("vllm.platforms.interface").UnspecifiedPlatform()
    platforms._current_platform.device_type = "cuda"
    flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    for place in VLLM_PARSERS:
        name = f"vllm.entrypoints.{place}.cli_args"
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if not name.startswith(missing.name or " "):
                raise
            continue
        parser: argparse.ArgumentParser = found.make_arg_parser(flexible())
        return parser
    sys.exit("this vLLM keeps its parser in a place that is not known yet")


PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {"sglang": sglang_parser, "vllm": vllm_parser}


def read_flag(action: argparse.Action, words: list[str], deprecated: set[argparse.Action]) -> Flag:
    """Returns one option."""
    negated = [word for word in words if word in _opposites(action, words)]
    meant = [word for word in words if word not in negated]
    name = choose_name(meant)
    return Flag(
        name=name,
        type=_type(action),
        aliases=tuple(sorted(word for word in meant if word != name)),
        choices=_choices(action),
        default=_default(action),
        many=action.nargs in ("+", "*") or (isinstance(action.nargs, int) and action.nargs > 1),
        deprecated=_deprecated(action, deprecated),
        negated=tuple(sorted(negated)),
        optional=action.nargs in ("?", "*"),
        named=() if action.choices else _named(action.metavar),
    )


def _choices(action: argparse.Action) -> tuple[str, ...]:
    choices = [str(_plain(choice)) for choice in action.choices or ()]
    return tuple(sorted(choices) if isinstance(action.choices, set | frozenset) else choices)


def _named(metavar: object) -> tuple[str, ...]:
    """Returns the values that vLLM shows where it takes others too: a list, or '{a,b} or what a plug-in adds'."""
    if isinstance(metavar, list):
        return tuple(str(value) for value in metavar)
    found = re.match(r"\{([^{}]+)\}", metavar) if isinstance(metavar, str) else None
    return tuple(sorted(found[1].split(","))) if found else ()


def _opposites(action: argparse.Action, words: list[str]) -> set[str]:
    known: set[str] = getattr(action, "negative_option_strings", set())
    if known or not isinstance(action, argparse.BooleanOptionalAction):
        return known
    return {word for word in words if word.startswith("--no-")}


def _type(action: argparse.Action) -> FlagType:
    if action.nargs == 0:
        return "switch"
    if action.type is None or action.type is str:
        return "text"
    return _probe(action.type) if callable(action.type) else "unknown"


def _probe(convert: Callable[[str], Any]) -> FlagType:
    """Finds out what a converter takes by giving it words: many are closures that have no telling name."""
    if "dataclass" in getattr(_innermost(convert), "__name__", ""):
        return "json"
    tried = {word: _try(convert, word) for word in ("7", "0.25", "8k", "{}", "[1]", "word")}
    if any(value is not None and not isinstance(value, str) for value in (tried["{}"], tried["[1]"])):
        return "json" if tried["word"] is None else "text"
    if isinstance(tried["8k"], int):
        return "count"
    if isinstance(tried["0.25"], float):
        return "float"
    if isinstance(tried["7"], int) and not isinstance(tried["7"], bool):
        return "int"
    return "text" if any(value is not None for value in tried.values()) else "unknown"


def _innermost(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    for cell in getattr(convert, "__closure__", None) or ():
        if callable(cell.cell_contents) and not isinstance(cell.cell_contents, type):
            return _innermost(cell.cell_contents)
    return convert


def _try(convert: Callable[[str], Any], word: str) -> Any:
    try:
        return convert(word)
    except Exception:  # noqa: BLE001 - not taking the word is the answer
        return None


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _default(action: argparse.Action) -> str | int | float | bool | None:
    value = _plain(action.default)
    if value is None or value is argparse.SUPPRESS or callable(value):
        return None
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, set | frozenset | tuple):
        value = sorted(value) if isinstance(value, set | frozenset) else list(value)
    try:
        return json.dumps(value)
    except TypeError:
        return None  # an object that the engine fills in at start


def _deprecated(action: argparse.Action, hidden: set[argparse.Action]) -> str:
    told = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
    marked = action in hidden or "Deprecated" in type(action).__name__ or getattr(action, "deprecated", False)
    instead = getattr(action, "new_flag", None)
    return f"use {instead.split()[0]}" if instead else read_deprecation(told) or ("deprecated" if marked else "")


def _spellings(parser: argparse.ArgumentParser) -> tuple[Spelling, ...]:
    """Finds out what the parser takes besides the exact words, by trying."""
    tried: tuple[tuple[Spelling, list[str]], ...] = (
        ("equals", ["--served-model-name=x"]),
        ("dotted", ["--hf-overrides.key", "1"]),
        ("prefixes", ["--served-model-n", "x"]),
        ("underscores", ["--served_model_name", "x"]),
    )
    return tuple(spelling for spelling, words in tried if _takes(parser, words))


def _takes(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    try:
        parser.parse_args(words)
    except SystemExit:
        return False
    return True


def find_rewritten(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Returns words of one letter that the parser rewrites before it looks at its options: vLLM takes `-O3` and `-O 3`."""
    found = {}
    for letter in string.ascii_letters:
        word = f"-{letter}"
        if not any(option.startswith(word) for option in parser._option_string_actions) and _takes(parser, [word, "3"]):
            usual, given = vars(parser.parse_args([])), vars(parser.parse_args([word, "3"]))
            found[word] = next(name for name, value in given.items() if value != usual[name])
    return found


def read_flags(parser: argparse.ArgumentParser) -> tuple[Flag, ...]:
    """Returns all options, those that the help hides too; exits where a stand-in got into one."""
    words: dict[int, list[str]] = {}
    for word, action in parser._option_string_actions.items():
        words.setdefault(id(action), []).append(word)
    options = [action for action in parser._actions if id(action) in words]
    for action in options:
        parts = (action.default, action.type, *(action.choices or ()))
        if any(is_stand_in(part) for part in parts):
            sys.exit(f"{words[id(action)]} hangs on something that is not installed: {parts}\n{Lenient.failed}")
    for word, name in find_rewritten(parser).items():
        words[next(id(action) for action in options if action.dest == name)].append(word)
    deprecated: set[argparse.Action] = getattr(parser, "_deprecated", set())  # where vLLM keeps them before Python 3.13
    flags = {flag.name: flag for flag in (read_flag(action, words[id(action)], deprecated) for action in options)}
    return tuple(flags[name] for name in sorted(flags))


def _make_parser(engine: str) -> argparse.ArgumentParser:
    """Returns the engine's parser; exits where a module that declares options could not be imported whole."""
    try:
        parser = PARSERS[engine]()
    except Exception as problem:  # noqa: BLE001 - code that is not ours sees stand-ins
        sys.exit(f"{problem!r}; not imported whole: {json.dumps(Lenient.failed, indent=1)}")
    broken = [f"{name}: {problem}" for name, problem in Lenient.failed.items() if re.search(DECLARES, name)]
    # What these modules take from another one of the engine's may be a type with choices in it.
    taken = [(who, what) for who, what in sorted(StandInModule.borrowed) if what.startswith(f"{engine}.")]
    broken += [f"{who} took {what}, which is not there" for who, what in taken if re.search(DECLARES, who)]
    if broken:
        sys.exit("\n".join([*broken, json.dumps(Lenient.failed, indent=1)]))
    for action in parser._actions:
        action.required = False  # so that words can be tried without a model
    return parser


def main() -> None:
    """Prints the catalog of one wheel as JSON."""
    engine, version, wheel_url = sys.argv[1:]
    sys.argv = [engine, "--help"]  # vLLM reads what it says of its options only when that is asked for
    wheel = open_wheel(wheel_url)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        stand_in_for(engine, wheel, Path(folder))
        parser = _make_parser(engine)
        source = f"its own argument parser, out of {wheel_url.rpartition('/')[2]}"
        catalog = Catalog(engine, version, source, read_flags(parser), _spellings(parser))
    sys.stdout.buffer.write(msgspec.json.encode(catalog))


if __name__ == "__main__":
    main()
