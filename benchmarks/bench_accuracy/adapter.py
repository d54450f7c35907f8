"""Runs `stoker bench` with the words that comparisons of tools use, and leaves its figures in a file.

    python benchmarks/bench_accuracy/adapter.py --base-url http://127.0.0.1:18080/v1 --model M --prompt-tokens 512 \\
        --tokens 97 --concurrency 8 --requests 16 RESULT.json

It is the command itself, in this process: what it takes to start and to measure is what users pay.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

MEANS = {
    "ttft_ms": ("ttft_s", 1e3),
    "itl_ms": ("itl_token_s", 1e3),
    "chunk_ms": ("itl_chunk_s", 1e3),
    "tps_request": ("request_decode_tps", 1.0),
    "prefill_tps": ("prefill_tps", 1.0),
    "tps_total": ("total_decode_tps", 1.0),
    "acceptance": ("accept_rate", 1.0),
}


NUMBER = click.IntRange(min=1)


@click.command()  # what the command itself is made with: another parser's import would count as its start-up
@click.option("--base-url", required=True)
@click.option("--model", required=True)
@click.option("--prompt-tokens", type=NUMBER, required=True)
@click.option("--tokens", type=NUMBER, required=True)
@click.option("--concurrency", type=NUMBER, required=True)
@click.option("--requests", type=NUMBER, required=True)
@click.option("--tokenizer", help="Taken and not needed: the server's own count is used.")
@click.argument("out", type=click.Path(path_type=Path))
def main(
    base_url: str,
    model: str,
    prompt_tokens: int,
    tokens: int,
    concurrency: int,
    requests: int,
    tokenizer: str | None,
    out: Path,
) -> None:
    """Measures once, and writes the result."""
    del tokenizer
    run = run_stoker(
        "bench", "--url", base_url, "--model", model, "--pp", str(prompt_tokens), "--tg", str(tokens),
        "--concurrency", str(concurrency), "--runs", str(max(1, requests // concurrency)), "--json",
    )  # fmt: skip
    out.write_text(json.dumps({"tps_kind": "decode", **means_of(run["cells"][0])}))


def run_stoker(*words: str) -> Any:
    """Returns what the command prints as JSON."""
    from stoker.cli.main import stoker

    printed = io.TextIOWrapper(io.BytesIO())
    sys.argv = ["stoker", *words]
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        stoker(prog_name="stoker")
    printed.seek(0)
    return json.load(printed)


def means_of(cell: Mapping[str, Any]) -> dict[str, float]:
    """Returns the means of a cell's figures, by the names that the comparison uses."""
    values: dict[str, Sequence[float]] = {one["name"]: one["values"] for one in cell["figures"]}
    found = {ours: (values[name], factor) for ours, (name, factor) in MEANS.items() if name in values}
    return {ours: factor * sum(numbers) / len(numbers) for ours, (numbers, factor) in found.items()}


if __name__ == "__main__":
    main()
