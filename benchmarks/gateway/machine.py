"""What the numbers were measured on and with."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import psutil

from benchmarks.gateway.peers import Entry, read_version
from benchmarks.gateway.processes import ROOT

LIBRARIES = ("uvloop", "httptools")


def describe_machine() -> str:
    """Returns a line about the machine."""
    memory_gib = psutil.virtual_memory().total / 2**30
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {platform.machine()} ({read_processor()}), "
        f"{os.cpu_count()} cores, "
        f"{memory_gib:.0f} GiB, Linux {platform.release()}, Python {platform.python_version()}, {libraries}; "
        f"load before {os.getloadavg()[0]:.2f}"
    )


def read_processor() -> str:
    """Returns the processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(": ")[2] for line in lines if line.startswith(("model name", "CPU part")))
    return next(names, "unknown processor")


def read_commit() -> str:
    """Returns the checkout's commit in brackets, nothing where there is none."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return f" ({done.stdout.strip()})"


class Stolen:
    """What share of the processors' time the host of a virtual machine took away since this was made."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    def describe(self) -> str:
        """Returns it in words."""
        times = psutil.cpu_times()
        stolen_s = getattr(times, "steal", 0.0) - getattr(self._before, "steal", 0.0)
        share = stolen_s / max(1e-9, sum(times) - sum(self._before))
        return f"{100 * share:.1f} % of the processors' time stolen by the host"


def describe_versions(entries: dict[str, Entry]) -> str:
    """Returns the versions of what is measured."""
    named = [f"Stoker {importlib.metadata.version('stoker')}{read_commit()}"]
    named += [f"{name} {read_version(entry)}" for name, entry in entries.items()]
    return ", ".join(named)
