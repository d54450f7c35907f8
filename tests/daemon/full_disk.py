"""Runs inside a mount namespace of its own: a Stoker whose state folder lies on a disk that fills up.

Usage: `unshare -rm python full_disk.py FOLDER`; prints one JSON object with what was seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from home import Home, wait_for
from stoker.records import State

DISK_BYTES = 3 * 1024**2


def main(folder: Path) -> None:
    """Fills the disk while an engine runs, stops and starts it, then makes room again."""
    home = Home(folder)
    state = home.paths.state
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(state)], check=True)
    home.run("up")
    filler = state / "filler"
    _fill(filler)
    answered = home.run("ask", "Hello?", "--max-tokens", "4", code=None).returncode
    warnings = wait_for("the warning", lambda: home.service("demo").warnings or None)
    home.run("down", "demo")
    stopped = home.service("demo")
    filler.unlink()
    again = home.json("up")
    asked = sum(line["requests"] for line in home.json("usage")["lines"])
    left = home.end()
    said = {
        "answered": answered, "warnings": warnings, "stopped": stopped.state, "stop_warnings": stopped.warnings,
        "again": again["state"], "again_warnings": again["warnings"], "left": list(left),
        "asked": asked,
    }  # fmt: skip
    assert stopped.state is State.STOPPED
    print(json.dumps(said))


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as out:
        for size in (65536, 4096, 1):
            try:
                while True:
                    out.write(b"x" * size)
            except OSError:
                continue


if __name__ == "__main__":
    main(Path(sys.argv[1]))
