"""A rank of a scripted engine over several machines, for faults that a real one cannot be made to show.

It is started with vLLM's words. The ranks find each other as vLLM's do, at the head's address; then the head answers. One
that has lost the others says nothing and does not end: so does a real one that waits for an exchange for ever.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from http.server import ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

from fake_engine import Handler, Script, wait_for_file, write_program
from fake_ray import nodes_of, write_ray

JOINED = (
    "INFO 11-24 01:00:00 [parallel_state.py:1] rank {rank} in world size {size} is assigned as DP rank 0, TP rank {rank}"
)
NCCL = "box:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:{address}<0>"
SERVICE = """
[service.duo]
model = "{model}"
engine = "vllm"
version = "0.32.0"
program = ["{program}"]
context = 1024
parallel = 4
boxes = ["a", "b"]
split = "tensor"
gate = []
{more}
"""


def main(script_file: str, words: list[str]) -> None:
    """Joins the others, and serves where it is the head."""
    script = Script(**json.loads(Path(script_file).read_text()))
    options = dict(pairwise(words))
    if options["--distributed-executor-backend"] == "ray":
        _serve_over_ray(script, options)
    rank, size = int(options["--node-rank"]), int(options["--nnodes"])
    address = options["--master-addr"], int(options["--master-port"])
    if script.ignores_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if script.dies == "loading":
        raise SystemExit(7)
    if script.gate:
        wait_for_file(script.gate)
    ends = _meet(rank, size, address)
    print(NCCL.format(address=address[0]), flush=True)
    print(JOINED.format(rank=rank, size=size), flush=True)
    if rank:
        signal.pause()
    serve(script, options)
    del ends


def serve(script: Script, options: dict[str, str]) -> None:
    """Answers as the script says, for ever."""
    Handler.script, Handler.model = script, options["--served-model-name"]
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(options["--port"])), Handler).serve_forever()


def _serve_over_ray(script: Script, options: dict[str, str]) -> None:
    """Serves where all boxes have joined Ray, and dies as vLLM does where they have not; its log tells of both."""
    nodes = nodes_of(os.environ["RAY_ADDRESS"])
    if script.dies == "loading" or len(nodes) != int(options["--tensor-parallel-size"]):
        raise SystemExit(f"Ray has {nodes}")
    given = sorted(name for name in os.environ if name.startswith("NCCL_"))
    print(f"stoker-test: over Ray on {nodes}, told {given}", flush=True)
    serve(script, options)


def _meet(rank: int, size: int, address: tuple[str, int]) -> list[socket.socket]:
    """Returns the connections once all are there."""
    if rank == 0:
        with socket.create_server(address) as door:
            return [door.accept()[0] for _ in range(size - 1)]
    while True:
        try:
            return [socket.create_connection(address)]
        except OSError:
            time.sleep(0.02)


def write_rank(folder: Path, script: Script) -> Path:
    """Writes a program that is a rank as scripted, to be named as a service's `program`."""
    folder.mkdir(parents=True, exist_ok=True)
    script_file, program = folder / "script.json", folder / "fake-vllm"
    script_file.write_text(json.dumps(script.__dict__))
    write_ray(folder)
    return write_program(program, "fake_rank", script_file)
