"""What happens to runs of benchmarks on a disk of 1 MiB, told on standard output; the disk is the folder named first."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench_samples import make_cell, make_repeats, make_result, make_run
from stoker.errors import StokerError
from stoker.store.bench import BenchStore, read_bench_run

FILE = Path(sys.argv[1]) / "bench.db"

with closing(BenchStore(FILE)) as store:
    run, kept = store.begin(make_run(is_whole=False), tuple(make_cell(prompt) for prompt in range(1, 5001))), 0
    try:
        while kept < 5000:
            result = make_result(make_cell(kept + 1), repeats=make_repeats(count=20, ttft_s=0.1 + kept / 7919))
            store.write_cell(run, kept, result)
            kept += 1
    except StokerError as problem:
        print(problem)
    if len(read_bench_run(FILE, run).run.cells) == kept:
        print("all cells that were kept are there")
