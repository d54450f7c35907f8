"""Asks an installed engine for its own flags: runs its `--help`, and remembers the answer while the program is the same.

What an engine prints is read by `help_argparse` and `help_llamacpp`; types, which Python's help does not tell, come from the
nearest catalog that is shipped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from stoker.box import Box
from stoker.errors import StokerError
from stoker.facts.engine.catalogs import find_catalog, parse_catalog, render_catalog
from stoker.facts.engine.flags import keep_names
from stoker.facts.engine.help_argparse import parse_argparse_help
from stoker.facts.engine.help_llamacpp import parse_llamacpp_help, parse_llamacpp_removed
from stoker.records import Catalog, Environment, Flag, Spelling

# What makes each print all of its options; a bare `--help` of vLLM prints the names of its groups.
HELP_WORDS = {"llamacpp": ("--help",), "sglang": ("--help",), "vllm": ("--help=all",)}
HELP_LIMIT_S = 120.0  # SGLang and vLLM import torch before they print their help: 10 to 40 s from a cold disk
PYTHON_SPELLINGS: tuple[Spelling, ...] = ("equals", "prefixes")
SPELLINGS: dict[str, tuple[Spelling, ...]] = {
    "llamacpp": ("underscores",),
    "sglang": PYTHON_SPELLINGS,
    "vllm": (*PYTHON_SPELLINGS, "dotted", "underscores"),
}
PARSERS: dict[str, Callable[[str], tuple[Flag, ...]]] = {
    "llamacpp": parse_llamacpp_help,
    "sglang": parse_argparse_help,
    "vllm": parse_argparse_help,
}


def read_engine_flags(box: Box, engine: str, program: Sequence[str], version: str | None, cache: Path) -> Catalog:
    """Returns the flags of an engine that is installed here, from the cache where the program has not changed.

    `program` are the words that start its server, such as `('/opt/venv/bin/python', '-m', 'sglang.launch_server')`. Raises
    StokerError where it does not print its flags.
    """
    return _ask(box, engine, (*program, *HELP_WORDS[engine]), version, cache, program_digest(program, version))


def read_image_flags(
    box: Box, engine: str, image: Environment, program: Sequence[str], version: str | None, cache: Path
) -> Catalog:
    """Returns the flags of the engine in an image that is on this machine, from the cache where that image was asked before.

    `program` are the words that start its server in the image. Raises StokerError where it does not print its flags: some
    engines do only where they find a GPU, and the container gets none.
    """
    facts = (image.digest or image.name, *program, version or "")
    return _ask(box, engine, render_image_help(engine, image, program), version, cache, _digest("\0".join(facts)))


def _ask(box: Box, engine: str, argv: Sequence[str], version: str | None, cache: Path, digest: str) -> Catalog:
    file = cache / f"{engine}-{digest}.json"
    if (known := _read_cached(file)) is not None:
        return known
    printed = box.run(argv, limit_s=HELP_LIMIT_S)
    if printed is None:
        why = "it is missing, ended with an error, or took too long"
        raise StokerError(f"`{' '.join(argv)}` did not print the flags of {engine}", why=why)
    catalog = parse_help(engine, version, printed, source=" ".join(argv))
    if not catalog.flags:
        raise StokerError(f"what `{' '.join(argv)}` prints names no flags", next_step=f"is it {engine}'s server?")
    write_cached(file, catalog)
    return catalog


def parse_help(engine: str, version: str | None, printed: str, source: str) -> Catalog:
    """Returns the catalog of a help text; types and names come from the nearest catalog that is shipped."""
    flags = PARSERS[engine](printed)
    near = find_catalog(engine, version).catalog
    gone = parse_llamacpp_removed(printed) if engine == "llamacpp" else {}
    read = keep_names(Catalog(engine, version or "unknown", source, flags, SPELLINGS[engine], gone), near)
    types = {flag.name: flag.type for flag in near.flags} if near else {}
    typed = (
        msgspec.structs.replace(flag, type=types.get(flag.name, flag.type)) if flag.type == "unknown" else flag
        for flag in read.flags
    )
    return msgspec.structs.replace(read, flags=tuple(typed))


def render_image_help(engine: str, image: Environment, program: Sequence[str]) -> tuple[str, ...]:
    """Returns the words that print an image's flags: nothing is pulled, and the container gets nothing and is not kept."""
    first, *rest = program
    confined = ("--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    started = (image.runtime or "docker", "run", "--rm", "--pull", "never", *confined)
    return (*started, "--entrypoint", first, image.name, *rest, *HELP_WORDS[engine])


def program_digest(program: Sequence[str], version: str | None) -> str:
    """Returns a digest that is another as soon as the program's file, its words or the engine's version are.

    A virtual environment's python stays the same file when the engine in it is upgraded; the version tells.
    """
    facts = ["\0".join(program), version or ""]
    path = Path(program[0])
    try:
        found = path.stat()
        facts += [os.path.realpath(path), str(found.st_size), str(found.st_mtime_ns)]
    except OSError:
        facts.append("")
    return _digest("\n".join(facts))


def _digest(facts: str) -> str:
    return hashlib.sha256(facts.encode(errors="surrogateescape")).hexdigest()[:16]


def _read_cached(file: Path) -> Catalog | None:
    """Returns what was remembered; None where nothing was, or something else lies there."""
    try:
        return parse_catalog(file.read_bytes())
    except (OSError, StokerError):
        return None


def write_cached(file: Path, catalog: Catalog) -> None:
    """Remembers a catalog; a folder that cannot be written costs time only, so it is no error."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(render_catalog(catalog))
        beside.replace(file)
    except OSError:
        return
