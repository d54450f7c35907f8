"""Writes one service after the other until it is killed; each name is printed once it is written."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from stoker.records import SavedService, Service, State
from stoker.store.services import ServiceStore
from support import make_plan

store, life = ServiceStore(Path(sys.argv[1])), sys.argv[2]
for number in count():
    name = f"s{life}-{number}"
    store.write(SavedService(make_plan(service=name), Service(State.READY, 1.0, "x" * 500)))
    print(name, flush=True)
