"""The flags of an engine: of a version, of a program that is installed here, and what is different between two."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from stoker import engines
from stoker.box import Box, LocalBox
from stoker.config import Paths
from stoker.errors import WrongUse
from stoker.facts.engine.catalogs import (
    find_catalog,
    known_engines,
    known_versions,
    load_all,
    load_catalog,
    version_key,
)
from stoker.facts.engine.flag_changes import compare_catalogs
from stoker.facts.engine.flags import find_lifetimes, search_flags
from stoker.facts.engine.help import read_engine_flags, read_image_flags
from stoker.facts.engine.image import entry_words
from stoker.flows.facts import need_image
from stoker.records import Catalog
from stoker.records.flags import CatalogChanges, FlagsView, KnownFlag, KnownVersions, Lifetime

MINOR = re.compile(r"v?\d+\.\d+")


def list_versions(engine: str) -> KnownVersions:
    """Returns the versions whose flags are known; raises WrongUse with the engines that there are."""
    if engine not in known_engines():
        raise WrongUse(f"no flags of `{engine}` are known", next_step=f"choose one of: {', '.join(known_engines())}")
    return KnownVersions(engine, known_versions(engine))


def choose_catalog(engine: str, version: str | None) -> tuple[Catalog, str]:
    """Returns the catalog nearest to a version, else the newest, with what is to be said of it; raises WrongUse.

    `0.20` is the newest of the 0.20.x that are known.
    """
    versions = list_versions(engine).versions
    found = find_catalog(engine, version or versions[-1])
    line = [one for one in versions if MINOR.fullmatch(version or "") and one.startswith(f"{version}.".lstrip("v"))]
    if line:
        why = f"{engine} {version} is taken for {line[-1]}, the newest of these whose flags are known"
        return load_catalog(engine, line[-1]), why
    if found.catalog is None:
        raise WrongUse(found.why, next_step=f"choose one of: {', '.join(versions)}")
    return found.catalog, found.why


def show_flags(catalog: Catalog, note: str, search: str = "") -> FlagsView:
    """Returns a catalog's flags, those that match the search, each with its lifetime."""
    flags = search_flags(catalog, search) if search else catalog.flags
    lifetimes = find_lifetimes(load_all(catalog.engine))
    unknown = Lifetime(None, None)
    known = ((flag, lifetimes.get(flag.name, unknown)) for flag in flags)
    rows = tuple(KnownFlag(flag, lived.since, lived.until) for flag, lived in known)
    return FlagsView(catalog.engine, catalog.version, catalog.source, note, rows)


def show_changes(before: Catalog, after: Catalog, search: str = "") -> CatalogChanges:
    """Returns what is different in the second catalog, as far as it matches the search."""
    first, last = version_key(before.version), version_key(after.version)
    known = [(version_key(one.version), one) for one in load_all(after.engine)]
    between = [one for key, one in known if first and last and key and first < key < last]
    changes = compare_catalogs(before, after, between)
    return _matching(changes, search.lower()) if search else changes


def _matching(changes: CatalogChanges, text: str) -> CatalogChanges:
    parts = ("added", "removed", "renamed", "defaults", "choices", "words", "types", "deprecated")
    found = {part: tuple(one for one in getattr(changes, part) if text in str(one).lower()) for part in parts}
    return msgspec.structs.replace(changes, **found)


def read_server_flags(paths: Paths, engine: str, server: str, box: Box | None = None) -> Catalog:
    """Returns the flags of an engine that is installed here; `server` is its program, or the python that has it."""
    list_versions(engine)
    box = box or LocalBox()
    return read_engine_flags(box, engine, server_words(engine, server), _version(box, engine, server), paths.state / "flags")


def read_flags_in_image(paths: Paths, engine: str, name: str, box: Box | None = None) -> Catalog:
    """Returns the flags of the engine in a container image that was pulled; raises WrongUse where it was not."""
    list_versions(engine)
    box = box or LocalBox()
    image = need_image(box, name)
    program = entry_words(image, engine) or engines.find(engine).program
    version = image.version or engines.version_in_tag(engines.image_parts(name)[1])
    return read_image_flags(box, engine, image, program, version, paths.state / "flags")


def server_words(engine: str, server: str) -> tuple[str, ...]:
    """Returns the words that start the server: with a python, the engine's module in it or the program beside it."""
    usual, *rest = engines.find(engine).program
    is_python, wants_python = Path(server).name.startswith("python"), usual.startswith("python")
    return (str(Path(server).with_name(usual)) if is_python and not wants_python else server, *rest)


def _version(box: Box, engine: str, server: str) -> str | None:
    known = engines.find(engine)
    if argv := known.version_argv(server):
        return known.parse_version(box.run(argv) or "")
    python = server if Path(server).name.startswith("python") else str(Path(server).with_name("python"))
    printed = box.run((python, "-I", "-c", f"import importlib.metadata as m; print(m.version({known.package or engine!r}))"))
    return printed.strip().splitlines()[0] if printed and printed.strip() else None
