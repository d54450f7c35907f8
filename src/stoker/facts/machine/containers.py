"""Reads which container engines there are, whether they answer, and whether they can hand NVIDIA's GPUs to a container."""

from __future__ import annotations

import re
from typing import Literal

from stoker.box import Box
from stoker.facts.machine.printed import find_json
from stoker.facts.model.documents import Document, items, table, text
from stoker.records import ContainerEngine

ContainerEngineName = Literal["docker", "podman"]
NAMES: tuple[ContainerEngineName, ...] = ("docker", "podman")
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi")
GPU_KIND = re.compile(r"""^[\s{]*["']?kind["']?\s*:\s*["']?nvidia\.com/gpu\b""", re.MULTILINE)
VERSION = re.compile(r"(\w+) version v?([^\s,]+)")
HOOK = "nvidia-container-runtime-hook"  # what `docker run --gpus` looks for where no runtime is registered


def read_container_engine(box: Box, name: ContainerEngineName) -> ContainerEngine | None:
    """Returns what is known of docker or podman; None where it is not installed, or is the other one by another name."""
    program = box.find_program(name)
    found = VERSION.search(box.run((name, "--version")) or "") if program else None
    if program is None or (found and found[1].lower() != name):  # podman comes with a `docker` that is podman
        return None
    # Docker exits with an error where its daemon does not answer, or may not be asked by us.
    info = find_json(box.run((name, "info", "--format", "json")))
    files = _read_cdi_files(box)
    parse = _from_docker if name == "docker" else _from_podman
    known = parse(info, files, box.find_program(HOOK) is not None) if isinstance(info, dict) else {}
    return ContainerEngine(name, program, found[2] if found else None, isinstance(info, dict), cdi_files=files, **known)


def _from_docker(info: Document, cdi_files: tuple[str, ...], has_hook: bool) -> Document:
    runtimes = tuple(sorted(table(info, "Runtimes")))
    by_cdi = bool(cdi_files) and bool(items(info, "CDISpecDirs"))
    return {
        "server_version": text(info, "ServerVersion"),
        "runtimes": runtimes,
        "storage": text(info, "Driver"),
        "offers_nvidia": "nvidia" in runtimes or by_cdi or has_hook,
    }


def _from_podman(info: Document, cdi_files: tuple[str, ...], has_hook: bool) -> Document:
    runtime = text(table(table(info, "host"), "ociRuntime"), "name")
    return {
        "server_version": text(table(info, "version"), "Version"),
        "runtimes": (runtime,) if runtime else (),
        "storage": text(table(info, "store"), "graphDriverName"),
        "offers_nvidia": bool(cdi_files),  # podman has no --gpus of its own: it goes by CDI
    }


def _read_cdi_files(box: Box) -> tuple[str, ...]:
    paths = [f"{folder}/{name}" for folder in CDI_FOLDERS for name in box.names(folder)]
    specs = (path for path in paths if path.endswith((".yaml", ".yml", ".json")))
    return tuple(path for path in specs if GPU_KIND.search(box.read(path) or ""))
