"""Writes cell after cell of one run until it is killed; each place is printed once it is written."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench_samples import make_cell, make_repeats, make_result, make_run
from stoker.store.bench import BenchStore

store = BenchStore(Path(sys.argv[1]))
run = store.begin(make_run(is_whole=False), tuple(make_cell(prompt) for prompt in range(1, 1001)))
for place in count():
    store.write_cell(run, place, make_result(make_cell(place + 1), repeats=make_repeats()))
    print(place, flush=True)
