"""The real programs that some tests check our files with, and a systemd of a test's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

PLACES = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/lib/systemd:/lib/systemd:/usr/libexec/podman:/usr/lib/podman"
NAMESPACES = ("unshare", "--mount", "--cgroup", "--pid", "--fork", "--mount-proc")
# What systemd expects of a machine: a /run of its own, and a control group tree that it may write to.
PREPARE = """
mount --make-rprivate / && mount -t tmpfs none /run
umount -l /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup || exit 1
[ "$1" = "$3" ] || mount --bind "$1" "$3" || exit 1
export container=docker SYSTEMD_UNIT_PATH="$3"
exec "$2" --system --unit=idle.service --log-target=console --log-level=info --show-status=no
"""
IDLE = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n"
LIMIT_S = 60.0


def missing(why: str) -> NoReturn:
    """Skips the test; fails it in CI, where everything has to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def need(program: str) -> str:
    """Returns the path of a program that a test cannot do without."""
    return shutil.which(program, path=PLACES) or missing(f"{program} is not installed; tools/install-test-packages does it")


class OwnPodman:
    """Podman with storage and settings of its own, told by `environment`, so that nobody's images are touched."""

    def __init__(self, folder: Path) -> None:
        need_root()
        need("podman")
        folder.mkdir()
        storage, settings = folder / "storage.conf", folder / "containers.conf"
        storage.write_text(f'[storage]\ndriver = "vfs"\nrunroot = "{folder}/run"\ngraphroot = "{folder}/graph"\n')
        # Limits cannot be raised, nor control groups asked of systemd, in every place where tests run.
        settings.write_text(
            '[containers]\ndefault_ulimits = ["nofile=1000:1000", "nproc=1000:1000"]\n'
            f'[engine]\ntmp_dir = "{folder}/tmp"\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nruntime = "runc"\n'
        )
        need("runc")
        self.folder = folder
        self.environment = {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(settings)}

    def __call__(self, *words: str | Path) -> str:
        """Runs podman."""
        return run("podman", *words, code=0, **self.environment)

    def make_image(self, name: str, programs: dict[str, str], *changes: str) -> None:
        """Makes an image of a shell and of programs written for it, with the changes that a Dockerfile would make."""
        tree = self.folder / "tree"
        for library in (Path("/bin/sh"), *map(Path, re.findall(r"/\S+", run("ldd", "/bin/sh")))):
            (tree / library.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, tree / library.relative_to("/"))
        for program, text in programs.items():
            (tree / "bin" / program).write_text(f"#!/bin/sh\n{text}")
            (tree / "bin" / program).chmod(0o755)
        with tarfile.open(self.folder / "tree.tar", "w") as archive:
            archive.add(tree, "/")
        options = (word for change in ("ENV PATH=/bin", *changes) for word in ("--change", change))
        self("import", *options, self.folder / "tree.tar", name)

    def end(self) -> None:
        """Deletes the storage."""
        self("system", "reset", "--force")


def run_on_a_small_disk(folder: Path, size_mib: int, program: Path, story: str) -> str:
    """Runs a program with a folder that is a full-able disk of its own, and the story it plays; returns what it printed."""
    mount = f'mount -t tmpfs -o size={size_mib}m none {folder} && exec "$@"'
    argv = ("unshare", "-rm", "sh", "-c", mount, "sh")
    if subprocess.run((*argv, "true"), capture_output=True, check=False).returncode:
        pytest.skip("this machine lets no user mount a small disk")
    words = (*argv, sys.executable, str(program), str(folder), story)
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def need_root() -> None:
    """Ends a test that needs root and namespaces."""
    if os.geteuid() != 0 or subprocess.run((*NAMESPACES, "true"), capture_output=True, check=False).returncode:
        missing("this needs root that may make namespaces")


def run(*argv: str | Path, code: int | None = 0, **more: str) -> str:
    """Runs a program and returns all it printed; fails where its exit code is another."""
    done = subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, timeout=LIMIT_S * 2, check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", **more},
    )  # fmt: skip
    assert code in (None, done.returncode), f"{argv} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


class Systemd:
    """A running systemd, the first process of its own namespaces."""

    def __init__(self, pid: int) -> None:
        self.enter = ("nsenter", f"--target={pid}", "--mount", "--pid", "--cgroup")

    def ctl(self, *words: str, code: int | None = 0) -> str:
        """Runs systemctl inside."""
        return run(*self.enter, need("systemctl"), *words, code=code)

    def show(self, unit: str, what: str) -> str:
        """Returns one property of a unit."""
        return self.ctl("show", "--value", f"--property={what}", unit).strip()


@contextmanager
def own_systemd(units: Path, seen_at: Path | None = None) -> Iterator[Systemd]:
    """Starts a systemd that knows the units of this folder alone, as if they lay at `seen_at`; all of it ends with it."""
    need_root()
    (units / "idle.service").write_text(IDLE)
    argv = (*NAMESPACES, "sh", "-c", PREPARE, "sh", str(units), need("systemd"), str(seen_at or units))
    with (units / "systemd.log").open("wb") as log:
        outer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    pid = 0
    try:
        pid = _first_child(outer)
        inside = Systemd(pid)
        end = time.monotonic() + LIMIT_S
        while "active" not in inside.ctl("is-active", "idle.service", code=None).split():
            assert time.monotonic() < end, (units / "systemd.log").read_text()
            time.sleep(0.05)
        yield inside
    finally:
        if pid:
            os.kill(pid, 9)  # the kernel ends all others of that namespace with its first process
        outer.wait(timeout=LIMIT_S)


def _first_child(outer: subprocess.Popen[bytes]) -> int:
    end = time.monotonic() + LIMIT_S
    while not (found := Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()):
        assert outer.poll() is None and time.monotonic() < end, "unshare did not start systemd"
        time.sleep(0.01)
    return int(found[0])
