"""Prints the help of the llama.cpp inside the xllamacpp wheel, by calling its argument parser; run by `catalog.py`.

The wheel brings no `llama-server` along, but all of it: `common_params_parse`, which prints the help and ends the process.
Its place comes from the library's own symbols, and so does that of the constructor of what it fills in.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from xllamacpp import xllamacpp

PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
CONSTRUCT = "_ZN13common_paramsC1Ev"
LIKELY_EXAMPLES = (12,)  # LLAMA_EXAMPLE_SERVER in common/common.h; the help then names --slots, and catalog.py looks for it
ROOM_BYTES = 1 << 20  # for a common_params, which takes a few KiB


def symbols(library: str) -> dict[str, int]:
    """Returns the addresses of a library's functions, relative to where it is loaded."""
    printed = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in printed.splitlines())
    return {row[2]: int(row[0], 16) for row in rows if len(row) == 3}


def load_address(library: str) -> int:
    """Returns where this process has loaded the library."""
    line = next(line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(library))
    return int(line.partition("-")[0], 16)


def main() -> None:
    """Prints the help; the parser exits."""
    library = xllamacpp.__file__
    known, start = symbols(library), load_address(library)
    room = ctypes.create_string_buffer(ROOM_BYTES)
    words = (ctypes.c_char_p * 3)(b"llama-server", b"--help", None)
    construct = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start + known[CONSTRUCT])
    kinds = (ctypes.c_bool, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    parse = ctypes.CFUNCTYPE(*kinds)(start + known[PARSE])
    construct(ctypes.addressof(room))
    parse(2, ctypes.addressof(words), ctypes.addressof(room), LIKELY_EXAMPLES[0], None)


if __name__ == "__main__":
    main()
