"""What happens to a store on a disk of 1 MiB, told on standard output; the disk is the folder named first."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from stoker.errors import StokerError
from stoker.records import SavedService, Service, State
from stoker.store.services import ServiceStore
from support import make_plan

FOLDER = Path(sys.argv[1])


def saved(number: int) -> SavedService:
    """Returns a service whose row is not small."""
    return SavedService(make_plan(service=f"s{number}"), Service(State.READY, 1.0, "x" * 3000))


def fill() -> Path:
    """Writes a file until the disk takes no more."""
    filler = FOLDER / "filler"
    with filler.open("wb", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(b"x" * 4096):
            pass
    return filler


def tell_full() -> None:
    """Fills the disk under a store that is in use, then makes room again."""
    with closing(ServiceStore(FOLDER / "stoker.db")) as store:
        for number in range(20):
            store.write(saved(number))
        filler = fill()
        written = 20
        try:
            while written < 10_000:
                store.write(saved(written))
                written += 1
        except StokerError as problem:
            print(problem)
        names = {one.plan.service for one in store.read_all()}
        if names == {f"s{number}" for number in range(written)}:
            print("all that was written is there")
        filler.unlink()
        store.write(saved(written))
        if len(store.read_all()) == written + 1:
            print("writing works again")


def tell_full_from_the_start() -> None:
    """Opens a new store where there is no room for one."""
    fill()
    try:
        ServiceStore(FOLDER / "stoker.db")
    except StokerError as problem:
        print(problem)


def tell_read_only() -> None:
    """Writes to a store whose disk became read-only, as a failing disk does."""
    ServiceStore(FOLDER / "stoker.db").close()
    subprocess.run(("mount", "-o", "remount,ro", str(FOLDER)), check=True)
    try:
        with closing(ServiceStore(FOLDER / "stoker.db")) as store:
            store.write(saved(1))
    except StokerError as problem:
        print(problem)


{"full": tell_full, "full from the start": tell_full_from_the_start, "read-only": tell_read_only}[sys.argv[2]]()
