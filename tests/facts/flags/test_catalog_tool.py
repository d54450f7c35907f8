"""The tool that reads an engine's own parser out of its wheel, run on small wheels made here."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from stoker.facts.engine.catalogs import parse_catalog
from stoker.records import Flag

DUMP = Path(__file__).parents[3] / "tools" / "parser_dump.py"
METADATA = "Metadata-Version: 2.1\nName: sglang\nVersion: 1.0\nRequires-Dist: torch-like>=2\n"

ARGUMENTS = """
    import argparse, dataclasses, enum, json
    import torch_like.cuda
    from torch_like import Tensor, compile
    from sglang.srt.kinds import Kind

    class Layer(torch_like.nn.Module):
        pass

    @compile
    def work(): ...

    def whole(text):
        return int(text[:-1]) * 1000 if text.endswith("k") else int(text)

    class ServerArgs:
        @staticmethod
        def add_cli_args(parser):
            add = parser.add_argument
            add("--tp-size", "--tensor-parallel-size", "-tp", type=int, default=1)
            add("--share", type=float, default=0.9)
            add("--length", type=whole)
            add("--kind", type=Kind, choices=list(Kind), default=Kind.FAST)
            add("--extra", type=json.loads, default={{"a": [1]}})
            add("--urls", nargs="*", default=[])
            add("--token", nargs="?")
            add("--on", action=argparse.BooleanOptionalAction, default=True)
            add("--old", help="Deprecated: use --kind instead.")
            add("--hidden", help=argparse.SUPPRESS, default=argparse.SUPPRESS)
            add("--served-model-name", required=True)
            add("--cuda", default={cuda})
"""
KINDS = """
    import enum
    class Kind(enum.Enum):
        FAST = "fast"
        SLOW = "slow"
"""


def make_wheel(folder: Path, cuda: str = "None", kinds: str = KINDS) -> Path:
    """Returns a wheel of an engine that needs a package which is not installed."""
    wheel = folder / "sglang-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sglang/__init__.py", "raise RuntimeError('no GPU')")
        archive.writestr("sglang/srt/server_args.py", textwrap.dedent(ARGUMENTS.format(cuda=cuda)))
        archive.writestr("sglang/srt/kinds.py", textwrap.dedent(kinds))
        archive.writestr("sglang-1.0.dist-info/METADATA", METADATA)
    return wheel


def dump(wheel: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs the tool."""
    return subprocess.run([sys.executable, str(DUMP), "sglang", "1.0", str(wheel)], capture_output=True, check=False)


def test_the_parser_of_a_wheel_is_read_where_it_cannot_run(tmp_path: Path) -> None:
    done = dump(make_wheel(tmp_path))
    assert done.returncode == 0, done.stderr.decode()
    catalog = parse_catalog(done.stdout)
    flags = {flag.name: flag for flag in catalog.flags}
    assert flags["--tensor-parallel-size"] == Flag("--tensor-parallel-size", "int", ("--tp-size", "-tp"), default=1)
    assert flags["--share"] == Flag("--share", "float", default=0.9)
    assert flags["--length"].type == "count"
    assert (flags["--kind"].choices, flags["--kind"].default) == (("fast", "slow"), "fast")
    assert (flags["--extra"].type, flags["--extra"].default) == ("json", '{"a": [1]}')
    assert flags["--urls"] == Flag("--urls", many=True, optional=True, default="[]")
    assert flags["--token"].optional
    assert flags["--on"] == Flag("--on", "switch", negated=("--no-on",), default=True)
    assert flags["--old"].deprecated == "use --kind"
    assert flags["--hidden"] == Flag("--hidden")
    assert set(catalog.spellings) == {"equals", "prefixes"}


@pytest.mark.parametrize("cuda", ["torch_like.cuda.device_count()", "list(torch_like.cuda.names())[0]"])
def test_what_hangs_on_something_that_is_not_installed_is_no_fact(tmp_path: Path, cuda: str) -> None:
    done = dump(make_wheel(tmp_path, cuda=cuda))
    assert done.returncode != 0
    assert b"--cuda" in done.stderr
    assert b"not installed" in done.stderr


def test_choices_from_a_module_that_could_not_be_imported_are_no_fact(tmp_path: Path) -> None:
    done = dump(make_wheel(tmp_path, kinds="import nothing_of_this_name"))
    assert done.returncode != 0
    assert b"sglang.srt.kinds" in done.stderr
