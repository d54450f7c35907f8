"""`stoker bench`: how fast an endpoint is. Its commands are the files of this folder; without one named it measures."""

from __future__ import annotations

from stoker.cli.words import Words

HELP = """Measure how fast an endpoint is, truly, and what speculation brings it.

SERVICE is one of yours, asked through the gateway (--direct: past it; --on BOX: a linked box's, through this door, so
that the link is part of each figure); --url measures any OpenAI-compatible address.
Each combination of prompt, new tokens, depth and concurrency is a cell: warmed up until it is steady, then repeated
until its interval is narrow enough. Prompts are exactly so many tokens by the server's own count, no two begin alike,
and no figure counts what failed. docs/bench.md defines every figure. Ctrl-C keeps what was measured. Exit code 1:
requests failed, or it was interrupted; 3: something asked for cannot be.

\b
Example:
  stoker bench
  stoker bench coder --pp 512 2048 --tg 128 --depth 0 4096 --concurrency 1 8 --content code
  stoker bench coder --on spark-b
  stoker bench --url http://spark:8000/v1 --model gemma --key-file key.txt --runs 5 --json
  stoker bench coder --rate 2 --arrivals poisson --requests 60 --slo ttft=500ms,itl=50ms
  stoker bench coder --content code --content prose --content chat
  stoker bench coder --soak 1h --concurrency 4
"""
COMMAND = Words(
    __name__, __path__, "measure", "[OPTIONS] [SERVICE]", name="bench", help=HELP,
    short_help="Measure how fast an endpoint is.",
)  # fmt: skip
