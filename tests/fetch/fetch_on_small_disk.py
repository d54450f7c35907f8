"""What a fetch does on a disk of 8 MiB, the folder named first; told on standard output."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from small_hub import BLOCK, Hub

FOLDER = Path(sys.argv[1])
FILE_BYTES = 3 * 1024**2


def fill() -> None:
    """Writes a file until the disk takes no more."""
    with (FOLDER / "filler").open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(b"x" * 4096):
            pass


def run_fetch(hub: Hub, keep_free: int) -> subprocess.CompletedProcess[str]:
    """Runs `stoker fetch` with its cache and state on the small disk."""
    (FOLDER / "stoker.toml").write_text(f"[fetch]\nkeep_free_bytes = {keep_free}\n")
    own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(FOLDER / "hf"), "STOKER_STATE": str(FOLDER / "state")}
    environment = {**os.environ, **own, "STOKER_CONFIG": str(FOLDER / "stoker.toml")}
    argv = (sys.executable, "-m", "stoker", "fetch", "org/big", "--all")
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)


def tell(done: subprocess.CompletedProcess[str]) -> None:
    """Prints the exit code and what was said."""
    print(f"exit {done.returncode}\n{done.stdout}{done.stderr}")


def tell_too_small(hub: Hub) -> None:
    """Asks for more than the disk has, with what is to stay free."""
    tell(run_fetch(hub, 6 * 1024**2))
    print("asked of the store:", len(hub.paths("store")))


def tell_filled(hub: Hub) -> None:
    """Fills the disk in the middle of a download, then makes room and goes on."""
    hub.fail("/store/", hold_at=64 * BLOCK, at_hold=fill).release.set()
    tell(run_fetch(hub, 0))
    (FOLDER / "filler").unlink()
    tell(run_fetch(hub, 0))
    first, second = (one.range for one in hub.asked if one.server == "store")
    print("went on:", first is None and second is not None)


hub = Hub()
hub.add("org/big", {"model.safetensors": os.urandom(FILE_BYTES), "config.json": b"{}"})
{"too small": tell_too_small, "filled": tell_filled}[sys.argv[2]](hub)
hub.close()
