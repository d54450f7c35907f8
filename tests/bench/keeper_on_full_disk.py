"""Measures while the disk fills up, and tells what became of the run; the disk is the folder named first."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench_samples import make_cell, make_repeats, make_result, make_run
from stoker.config import Paths
from stoker.flows.bench_keeping import Keeper

FOLDER = Path(sys.argv[1])
os.chdir(FOLDER)  # what is left beside has no room here either
asked = tuple(make_cell(prompt) for prompt in range(1, 301))
keeper = Keeper(Paths(FOLDER / "state", FOLDER / "stoker.toml"), make_run(is_whole=False), asked)
for number, cell in enumerate(asked):
    keeper.keep(make_result(cell, repeats=make_repeats(count=20, ttft_s=0.1 + number / 7919)))
kept = keeper.close(make_run())
left = json.loads(kept.left_at.read_text()) if kept.left_at else {"run": {"cells": []}}
if kept.left_at:
    kept.left_at.unlink()
print(
    json.dumps(
        {
            "asked": len(asked),
            "cells": len(kept.run.cells),
            "left_at": str(kept.left_at),
            "cells_left": len(left["run"]["cells"]),
            "warnings": kept.warnings,
        }
    )
)
