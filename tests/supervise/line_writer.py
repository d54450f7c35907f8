"""Appends numbered lines to a file as an engine does, so many as each line on standard input asks for."""

from __future__ import annotations

import os
import sys

descriptor = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
number = 0
for asked in sys.stdin:
    for _ in range(int(asked)):
        os.write(descriptor, f"line {number} {'x' * 80}\n".encode())
        number += 1
    print(number, flush=True)
