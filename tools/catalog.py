"""Writes the flags of an engine's version to `src/stoker/facts/engine/catalogs/`, from its release.

    python tools/catalog.py sglang 0.5.23
    python tools/catalog.py vllm 0.33.0 0.34.0
    python tools/catalog.py llamacpp          # the one inside the installed xllamacpp wheel
    python tools/catalog.py --check           # makes all of them again, or those of one engine, and says what is stale

vLLM and SGLang: the engine's own argument parser is imported out of the wheel, see `stand_ins.py`. llama.cpp: the help that
its parser prints.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from wheel_source import find_wheel

from stoker.facts.engine.catalogs import (
    FOLDER,
    Key,
    known_engines,
    known_versions,
    load_all,
    parse_catalog,
    render_catalog,
    version_key,
)
from stoker.facts.engine.flags import keep_names
from stoker.facts.engine.help_llamacpp import parse_llamacpp_help, parse_llamacpp_removed
from stoker.records import Catalog

HERE = Path(__file__).parent
WHEEL = "xllamacpp"


def read_python_engine(engine: str, version: str) -> Catalog:
    """Returns the catalog of a release, read in a process that knows nothing of this machine's settings."""
    argv = [sys.executable, str(HERE / "parser_dump.py"), engine, version, find_wheel(engine, version)]
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(argv, capture_output=True, env=bare, check=False)
    if done.returncode:
        sys.exit(f"{engine} {version}: {done.stderr.decode()}")
    return parse_catalog(done.stdout)


def read_llamacpp() -> Catalog:
    """Returns the catalog of the llama.cpp in the installed wheel; its version is the wheel's last number."""
    wheel = importlib.metadata.version(WHEEL)
    argv = [sys.executable, str(HERE / "llama_help.py")]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    if "--slots" not in printed:
        sys.exit("this llama.cpp counts its examples otherwise: the help is not that of the server")
    flags, gone = parse_llamacpp_help(printed), parse_llamacpp_removed(printed)
    source = f"its own argument parser's help, out of {WHEEL} {wheel}"
    return Catalog("llamacpp", f"b{wheel.rpartition('.')[2]}", source, flags, ("underscores",), gone)


def read_catalogs(engine: str, versions: list[str]) -> list[Catalog]:
    """Returns the catalogs of some versions, each with its flags called as in the version before it."""
    if engine == "llamacpp":
        return [_keep_names(read_llamacpp(), [])]
    made: list[Catalog] = []
    for version in sorted(versions, key=_order):
        made.append(_keep_names(read_python_engine(engine, version), made))
    return made


def _keep_names(catalog: Catalog, made: list[Catalog]) -> Catalog:
    before = [one for one in (*load_all(catalog.engine), *made) if _order(one.version) < _order(catalog.version)]
    return keep_names(catalog, max(before, key=lambda one: _order(one.version), default=None))


def _order(version: str) -> Key:
    key = version_key(version)
    return sys.exit(f"{version} is no version") if key is None else key


def check(engines: list[str]) -> None:
    """Exits with 1 where a shipped catalog is not what its release says."""
    made = [catalog for engine in engines for catalog in read_catalogs(engine, list(known_versions(engine)))]
    shipped = [(one, _file(one).read_text() if _file(one).exists() else "") for one in made]
    stale = [f"{one.engine} {one.version}" for one, text in shipped if text != render_catalog(one)]
    if stale:
        sys.exit(f"not what their releases say: {', '.join(stale)}")


def _file(catalog: Catalog) -> Path:
    return FOLDER / catalog.engine / f"{catalog.version}.json"


def main() -> None:
    """Writes catalogs, or checks those that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="?", choices=("llamacpp", "sglang", "vllm"))
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check([options.engine] if options.engine else known_engines())
    elif not options.engine or (options.engine != "llamacpp" and not options.versions):
        parser.error("name an engine and versions of it")
    else:
        for catalog in read_catalogs(options.engine, options.versions):
            _file(catalog).parent.mkdir(parents=True, exist_ok=True)
            _file(catalog).write_text(render_catalog(catalog))
            print(f"{catalog.engine} {catalog.version}: {len(catalog.flags)} flags")


if __name__ == "__main__":
    main()
