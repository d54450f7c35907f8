"""What a run on GPUs was of: its day, machine, versions and commit, kept beside its results as `run.json`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from stoker.facts.machine.nvidia import read_nvidia

FILE = "run.json"
ROOT = Path(__file__).resolve().parents[2]
VERSIONS = """
import json, sys
from importlib.metadata import distributions
print(json.dumps({one.name: one.version for one in distributions() if one.name in sys.argv[1:]}))
"""


class GpuRun(msgspec.Struct, frozen=True):
    """What results are of; None where it could not be told."""

    day: str
    gpus: tuple[str, ...]
    driver: str | None
    cores: int
    torch: str | None
    engines: dict[str, str]
    commit: str | None


def look(python: str, sites: Mapping[str, str]) -> GpuRun:
    """Returns what a run that begins now is of. `sites` are the folders of unpacked engines, `python` has the torch."""
    found = read_nvidia()
    versions = read_versions(python, sites)
    return GpuRun(
        time.strftime("%Y-%m-%d"), tuple(gpu.name for gpu in found.gpus), found.driver, len(os.sched_getaffinity(0)),
        versions.pop("torch", None), versions, read_commit(),
    )  # fmt: skip


def read_versions(python: str, sites: Mapping[str, str]) -> dict[str, str]:
    """Returns the versions of torch and of the engines, as installed and not as any file of ours says."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sites.values())}
    argv = [python, "-c", VERSIONS, "torch", *sites]
    done = subprocess.run(argv, env=environment, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=dict[str, str])


def read_commit() -> str | None:
    """Returns what is checked out here; None without git or outside of a clone."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def keep(run: GpuRun, folder: Path) -> None:
    """Writes it beside the results."""
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(run)) + b"\n")


def read(folder: Path) -> GpuRun | None:
    """Returns what the results in a folder are of; None where that was not kept."""
    file = folder / FILE
    return msgspec.json.decode(file.read_bytes(), type=GpuRun) if file.exists() else None


def say(run: GpuRun) -> str:
    """Returns it as a line above the figures."""
    cards = " and ".join(f"{run.gpus.count(name)} {name}" for name in dict.fromkeys(run.gpus)) or "no GPU"
    engines = ", ".join(f"{name} {version}" for name, version in sorted(run.engines.items()))
    more = [f"driver {run.driver}" if run.driver else "", f"torch {run.torch}" if run.torch else "", f"{run.cores} cores"]
    of = f"; commit {run.commit}" if run.commit else ""
    return f"{run.day}, {cards}, {', '.join(filter(None, more))}; {engines}{of}."
