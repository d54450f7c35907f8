"""The steps of an overlay's Dockerfile, run by a real shell and a real git on folders of the test's own."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from launch_samples import make_overlay
from real_tools import need, run
from stoker.launch.dockerfile import render_overlay

FIXED = "intermediate_size = 8192\n"
GIT = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")


class Image:
    """An installed package with a compiled part, and a repository that has its sources."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sources = folder, folder / "sources"
        self.package = folder / "site" / "enginelib"
        self.package.mkdir(parents=True)
        for name, text in (
            ("__init__.py", ""),
            ("draft.py", "intermediate_size = 4096\n"),
            ("_C.so", "kernels"),
            ("_version.py", "v=1"),
        ):
            (self.package / name).write_text(text)
        repository = folder / "upstream"
        (repository / "enginelib").mkdir(parents=True)
        (repository / "enginelib" / "draft.py").write_text(FIXED)
        (repository / "enginelib" / "__init__.py").write_text("new = True\n")
        self._git(repository, "init", "-q")
        self._git(repository, "add", ".")
        self._git(repository, "commit", "-qm", "fixed")
        self.commit = self._git(repository, "rev-parse", "HEAD").strip()

    def _git(self, repository: Path, *words: str) -> str:
        return run(need("git"), "-C", repository, *GIT, *words)

    def build(self, commit: str, sha256: str) -> int:
        """Runs the steps; returns the exit code of the first that fails, or 0."""
        overlay = make_overlay(package="enginelib", commit=commit, checksums=(("enginelib/draft.py", sha256),))
        text = render_overlay(overlay).replace(overlay.repository, f"file://{self.folder}/upstream")
        for step in re.findall(r"^RUN (?:--mount=\S+ )?((?:.*\\\n)*.*)$", text, re.MULTILINE):
            script = step.replace("/sources", str(self.sources))
            done = subprocess.run(
                ("sh", "-c", script), capture_output=True, check=False, cwd=self.folder,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(self.folder / "site")},
            )  # fmt: skip
            if done.returncode:
                return done.returncode
        return 0


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def test_the_sources_of_the_commit_take_the_place_of_the_images_and_the_rest_stays(image: Image) -> None:
    assert image.build(image.commit, hashlib.sha256(FIXED.encode()).hexdigest()) == 0
    assert (image.package / "draft.py").read_text() == FIXED
    assert (image.package / "__init__.py").read_text() == "new = True\n"
    assert (image.package / "_C.so").read_text() == "kernels"
    assert (image.package / "_version.py").read_text() == "v=1"


def test_another_commit_than_the_pinned_one_ends_the_build(image: Image) -> None:
    assert image.build("ab" * 20, hashlib.sha256(FIXED.encode()).hexdigest()) != 0
    assert "4096" in (image.package / "draft.py").read_text()


def test_sources_that_are_not_the_ones_meant_end_the_build(image: Image) -> None:
    assert image.build(image.commit, "ab" * 32) != 0
    assert "4096" in (image.package / "draft.py").read_text()
