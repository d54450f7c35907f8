"""What a chunk of another box costs its door where a real engine writes: llama.cpp with the demo model, many at once.

    python -m benchmarks.boxes_real [--page docs/measured/boxes.md]

As `benchmarks.boxes --only cost`, but the engine decides when it writes: one token for all requests in each step.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import ExitStack
from pathlib import Path

import httpx

from benchmarks.boxes import CHAT, LIMIT_S, ROUNDS, Box, Cost, say_ratios
from benchmarks.gateway.document import write_part
from benchmarks.gateway.machine import describe_machine
from benchmarks.gateway.processes import read_cpu_s
from stoker.config import demo_model

STREAMS, TOKENS = 16, 200
TABLE = f'[service.mock]\nmodel = "{demo_model()}"\nserved_name = "mock"\nreasoning = "off"\nparallel = {STREAMS}\n'


async def _stream(client: httpx.AsyncClient, number: int) -> int:
    """Returns how many events of an answer came."""
    question = [{"role": "user", "content": f"Write a long story about lamp number {number}."}]
    body = {"model": "mock", "stream": True, "max_tokens": TOKENS, "messages": question, "seed": number}
    async with client.stream("POST", CHAT, json=body) as reply:
        reply.raise_for_status()
        return len([line async for line in reply.aiter_lines() if line.startswith("data: ")])


async def _drive(box: Box) -> float:
    """Returns the door's processor time for 1000 chunks, in milliseconds."""
    url, pid = f"http://127.0.0.1:{box.home.port}", box.pid
    async with httpx.AsyncClient(base_url=url, headers=box.home.headers, timeout=LIMIT_S) as client:
        before_s = read_cpu_s([pid])
        chunks = await asyncio.gather(*(_stream(client, number) for number in range(STREAMS)))
    return (read_cpu_s([pid]) - before_s) / sum(chunks) * 1e6


def measure() -> list[Cost]:
    """Asks one box at its own door, and the same box through another one's, turn by turn."""
    with ExitStack() as ends:
        door, box = Box("door"), Box("far", TABLE)
        ends.callback(door.home.stop)
        ends.callback(box.home.stop)
        door.join(box)
        return [Cost(None, asyncio.run(_drive(box)), asyncio.run(_drive(door))) for _ in range(ROUNDS)]


def main() -> None:
    """Measures, prints, and writes the page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    found = measure()
    said = f"llama.cpp (embedded), the demo model, {STREAMS} requests at once of up to {TOKENS} tokens. {say_ratios(found)}"
    text = f"{describe_machine()}\n\n{said}"
    print(text)
    if options.page:
        write_part(options.page, "real", text)


if __name__ == "__main__":
    main()
