"""A full disk costs log lines and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = Path(__file__).with_name("full_disk.py")


def can_mount() -> bool:
    """Tells whether this user may make a mount namespace."""
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount() and os.environ.get("CI") != "true", reason="this user may make no mount namespace")
def test_a_full_disk_costs_log_lines_and_nothing_else(tmp_path: Path) -> None:
    argv = ["unshare", "-rm", sys.executable, str(SCENARIO), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["answered"] == 0
    assert any("is full" in warning for warning in seen["warnings"])
    assert seen["stopped"] == "STOPPED"
    assert seen["again"] == "READY"
    assert seen["again_warnings"] == []
    assert seen["asked"] == 2  # the one on the full disk was written later
    assert seen["left"] == []
