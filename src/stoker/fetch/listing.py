"""What a repository of the hub holds at one commit, as the hub lists it. The hub is not trusted with our paths."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from stoker.errors import StokerError

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo
    from huggingface_hub.hf_api import RepoSibling

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA1, SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
DEFAULT_REVISION = "main"


class HubFile(NamedTuple):
    """One file: its name, its size, and its digest, which is SHA-256 for large files and Git's SHA-1 for small ones."""

    name: str
    size_bytes: int
    digest: str

    @property
    def is_large(self) -> bool:
        """Whether the hub keeps it outside Git (LFS or Xet)."""
        return len(self.digest) == 64


class Listing(NamedTuple):
    """A repository at a commit."""

    repository: str
    asked: str
    revision: str
    files: tuple[HubFile, ...]


def read_listing(repository: str, asked: str, info: ModelInfo) -> Listing:
    """Returns the hub's answer as a listing; raises StokerError where it could lead astray."""
    revision = info.sha or ""
    if COMMIT.fullmatch(revision) is None:
        raise _nonsense(repository, f"its commit is {revision[:60]!r}")
    files = tuple(_file(repository, sibling) for sibling in info.siblings or ())
    return Listing(repository, asked, revision, files)


def _file(repository: str, sibling: RepoSibling) -> HubFile:
    name, lfs = sibling.rfilename, sibling.lfs
    size_bytes, digest = (lfs.size, lfs.sha256) if lfs else (sibling.size, sibling.blob_id or "")
    if not _is_safe(name):
        raise _nonsense(repository, f"a file is called {name[:80]!r}")
    if size_bytes is None or size_bytes < 0 or not (SHA256 if lfs else SHA1).fullmatch(digest):
        raise _nonsense(repository, f"{name[:80]} has no size or no digest")
    return HubFile(name, size_bytes, digest)


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    has_odd_part = any(part in ("", ".", "..") for part in name.split("/"))
    return bool(name) and not path.is_absolute() and not has_odd_part and "\\" not in name and name.isprintable()


def _nonsense(repository: str, why: str) -> StokerError:
    return StokerError(
        f"the hub's list of files of {repository} cannot be used",
        why=why,
        next_step="look whether `endpoint` of [fetch] or HF_ENDPOINT names a real hub",
    )
