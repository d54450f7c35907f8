"""The flags of each engine by exact version: one JSON file for each, written by `tools/catalog.py` from a release."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from stoker.errors import StokerError, WrongUse
from stoker.records import Catalog, Flag
from stoker.records.flags import NearCatalog

FOLDER = Path(__file__).parent
# Eighteen digits are more than any version has; of some thousand Python makes no number.
NUMBERS = re.compile(r"[vb]?(\d{1,18}(?:\.\d{1,18})*)(?!\d)")
STAGE = re.compile(r"\.?(a|b|rc|dev|post)(\d{1,18})")
UNSAID = Flag(name="")
Key = tuple[tuple[int, ...], int]


def known_engines() -> list[str]:
    """Returns the engines of which catalogs are shipped."""
    return sorted(folder.name for folder in FOLDER.iterdir() if any(folder.glob("*.json")))


@cache
def known_versions(engine: str) -> tuple[str, ...]:
    """Returns the versions of which catalogs are shipped, oldest first; empty for an engine that has none."""
    names = [file.stem for file in (FOLDER / engine).glob("*.json")] if engine in known_engines() else []
    return tuple(sorted(names, key=lambda name: version_key(name) or ((), 0)))


@cache
def load_catalog(engine: str, version: str) -> Catalog:
    """Returns the catalog of exactly this version; raises WrongUse with those that are known."""
    if version not in known_versions(engine):
        known = ", ".join(known_versions(engine) or known_engines())
        raise WrongUse(f"the flags of {engine} {version} are not known", next_step=f"known are: {known}")
    return parse_catalog((FOLDER / engine / f"{version}.json").read_bytes())


def load_all(engine: str) -> list[Catalog]:
    """Returns all catalogs of an engine, oldest first."""
    return [load_catalog(engine, version) for version in known_versions(engine)]


def find_catalog(engine: str, version: str | None) -> NearCatalog:
    """Returns the catalog of a version: its own, else that of the newest one before it in the same minor version."""
    if not known_versions(engine):
        return NearCatalog(None, f"no flags of {engine} are known")
    key = version_key(version or "")
    if key is None:
        return NearCatalog(None, f"which version of {engine} it is, is unknown" + (f" ({version})" if version else ""))
    keys = {name: version_key(name) or ((), 0) for name in known_versions(engine)}
    older = [name for name, known in keys.items() if known <= key and _line(known) == _line(key)]
    if not older:
        return NearCatalog(None, f"the flags of {engine} {version}, or of one shortly before it, are not known")
    exact = keys[older[-1]] == key
    why = "" if exact else f"{engine} {version} is judged by the flags of {older[-1]}, the nearest known version before it"
    return NearCatalog(load_catalog(engine, older[-1]), why)


def version_key(text: str) -> Key | None:
    """Returns what versions are ordered by; None for 'latest' and the like.

    llama.cpp counts builds: 'b11549', '11549' and the wheel's '2026.10.11549' are the same.
    """
    found = NUMBERS.match(text)
    if found is None:
        return None
    numbers = tuple(int(part) for part in found[1].split("."))
    if numbers[0] > 2000:
        return numbers[-1:], 0
    while len(numbers) > 2 and numbers[-1] == 0:
        numbers = numbers[:-1]
    stage = STAGE.match(text, found.end())
    return numbers, 0 if stage is None else int(stage[2]) if stage[1] == "post" else -1


def _line(key: Key) -> tuple[int, ...]:
    """Returns major and minor version; builds that are only counted are all of one line."""
    return key[0][:2] if len(key[0]) > 1 else ()


def parse_catalog(text: bytes) -> Catalog:
    """Reads a catalog's file; raises StokerError where it is none."""
    try:
        return msgspec.json.decode(text, type=Catalog)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise StokerError("a file of flags cannot be read", why=str(problem)) from problem


def render_catalog(catalog: Catalog) -> str:
    """Returns a catalog's file: a line for each flag, sorted, without what goes without saying, so that diffs read well."""
    head: dict[str, object] = {
        "engine": catalog.engine,
        "version": catalog.version,
        "source": catalog.source,
        "spellings": catalog.spellings,
    }
    if catalog.gone:
        head["gone"] = catalog.gone
    lines = [msgspec.json.encode(_said(flag)).decode() for flag in sorted(catalog.flags, key=lambda flag: flag.name)]
    return f'{msgspec.json.encode(head).decode()[:-1]},"flags":[\n' + ",\n".join(lines) + "\n]}\n"


def _said(flag: Flag) -> dict[str, object]:
    values = {name: getattr(flag, name) for name in flag.__struct_fields__}
    return {name: value for name, value in values.items() if value != getattr(UNSAID, name)}
