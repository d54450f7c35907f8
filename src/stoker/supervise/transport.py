"""What NCCL says that the ranks of a model go over, by its own lines (NCCL_DEBUG=INFO). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

# `NCCL INFO NET/IB : Using [0]rocep1s0f1:1/RoCE`, `NET/Socket : Using [0]eth0:10.0.0.1<0>`; newer: `Using network IB`.
SAID = re.compile(r"NCCL INFO (?:NET/(IB|Socket) : Using|Using network (IB|Socket))\b")


def read_transport(lines: Iterable[str]) -> str | None:
    """Returns `NET/IB` or `NET/Socket`, the last that was said; None where nothing tells."""
    found = None
    for line in lines:
        if hit := SAID.search(line):
            found = f"NET/{hit[1] or hit[2]}"
    return found
