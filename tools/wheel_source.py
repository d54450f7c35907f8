"""Opens a released wheel where pip says it lies, without downloading more of it than is read.

A vLLM wheel is 350 MB, and its argument parser needs 1 % of that. The index is whichever one pip is configured for.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import urllib.request
import zipfile

READ_AHEAD_BYTES = 256 * 1024
GLIBC_MINORS = (39, 38, 37, 36, 35, 34, 31, 28, 27, 24, 17)
ARCHES = ("aarch64", "x86_64")  # the first is what a GB10 runs; the Python files are the same


class RemoteFile(io.RawIOBase):
    """A file behind a URL that is read piece by piece, by HTTP range requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.position = 0
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:  # noqa: S310
            self.size = int(answer.headers["Content-Length"])

    def readable(self) -> bool:
        """Says that it can be read."""
        return True

    def seekable(self) -> bool:
        """Says that any place of it can be read."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves the place that is read next."""
        self.position = (0, self.position, self.size)[whence] + offset
        return self.position

    def tell(self) -> int:
        """Returns the place that is read next."""
        return self.position

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Fetches as much as the buffer takes."""
        end = min(self.position + len(buffer), self.size)
        if self.position >= end:
            return 0
        wanted = {"Range": f"bytes={self.position}-{end - 1}"}
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=wanted)) as answer:  # noqa: S310
            if answer.status != 206:
                raise OSError(f"{self.url} cannot be read in pieces")
            piece = answer.read()
        buffer[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)


def find_wheel(package: str, version: str) -> str:
    """Returns the URL of the wheel that pip would take; exits with pip's words where there is none."""
    platforms = (f"--platform=manylinux_2_{minor}_{arch}" for arch in ARCHES for minor in GLIBC_MINORS)
    with tempfile.TemporaryDirectory() as target:
        argv = [
            sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed",
            "--only-binary=:all:", *platforms, "--python-version=3.12", "--target", target, "--report=-",
            f"{package}=={version}",
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    url: str = json.loads(done.stdout)["install"][0]["download_info"]["url"]
    return url


def open_wheel(url: str) -> zipfile.ZipFile:
    """Opens a wheel behind a URL, or in a file."""
    if "://" not in url:
        return zipfile.ZipFile(url)
    return zipfile.ZipFile(io.BufferedReader(RemoteFile(url), READ_AHEAD_BYTES))  # type: ignore[type-var]
