"""Requests and repeats for tests of figures, and runs against servers of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stoker.bench.cell import Settings
from stoker.flows.bench import Live, Wanted, bench
from stoker.flows.bench_asked import Grid
from stoker.records import BenchCell, BenchLoad, BenchRepeat, BenchRun, BenchSubject, RequestSeen, Target, TokensRead

CLOSED = BenchLoad("closed", 1)


def make_request(**changes: Any) -> RequestSeen:
    """Returns a request whose 4 + 96 tokens came in 97 writes, the first after 200 ms, the last after 1,160."""
    facts: dict[str, Any] = {
        "sent_at_s": 0.0, "first_chunk_s": 0.01, "ttft_s": 0.2, "last_token_s": 1.16, "done_s": 1.2, "prompt_tokens": 512,
        "cached_tokens": None, "output_tokens": 100, "first_write_tokens": 4, "chunks": 97, "counted_by": "usage",
        "status": 200,
    }  # fmt: skip
    return RequestSeen(**{**facts, **changes})


def make_repeat(*requests: RequestSeen, **changes: Any) -> BenchRepeat:
    """Returns a repeat of these requests."""
    return BenchRepeat(**{"began_at": 0.0, "took_s": 1.16, "requests": requests, **changes})


def make_writes(*pairs: tuple[float, int]) -> tuple[TokensRead, ...]:
    """Returns writes of (at_s, tokens)."""
    return tuple(TokensRead(at_s, tokens, 1) for at_s, tokens in pairs)


def make_cell(**changes: Any) -> BenchCell:
    """Returns a cell of 512 and 128 tokens, one request at a time."""
    facts: dict[str, Any] = {
        "prompt_tokens": 512, "new_tokens": 128, "depth_tokens": 0, "load": CLOSED, "content": "prose",
    }  # fmt: skip
    return BenchCell(**{**facts, **changes})


def settings(**changes: Any) -> Settings:
    """Returns settings of two repeats, which end soon where nothing comes."""
    facts: dict[str, Any] = {
        "seed": 1, "runs": 2, "precision": 0.05, "budget_s": 60.0, "silence_s": 10.0, "more": {"temperature": 0.0},
    }  # fmt: skip
    return Settings(**{**facts, **changes})


def run_bench(
    target: Target, *, prompts: Sequence[int] = (128,), new: int = 12, depths: Sequence[int] = (0,),
    loads: Sequence[BenchLoad] = (CLOSED,), content: str = "prose", shares_prefix: bool = False, turns: int = 1,
    tell: Callable[[str], None] = lambda text: None, tokenizer: Callable[[str], int] | None = None, **more: Any,
) -> BenchRun:  # fmt: skip
    """Measures a target as `stoker bench` does."""
    grid = Grid(tuple(prompts), (new,), tuple(depths), tuple(loads), (content,), shares_prefix, turns)
    wanted = Wanted(target, BenchSubject(target.url, target.model), grid.cells(), settings(**more), tokenizer=tokenizer)
    return bench(wanted, Live(lambda result: None, lambda cell, text: tell(text)))


def figures(run: BenchRun, place: int = 0) -> dict[str, float]:
    """Returns the medians of a cell by their names."""
    return {one.name: one.median for one in run.cells[place].figures}
