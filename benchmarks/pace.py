"""Asks a service that runs the same prompts again and again, and says how its pace goes up and down.

    python -m benchmarks.pace SERVICE [--for 160] [--prompts 8] [--content code] [--pp 128] [--tg 256]

A round asks each prompt once, one at a time, past the gateway. What a prompt is by itself falls out: a round's pace is by
how much its prompts were faster than they were in the mean of all rounds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from stoker.bench.figures import figures_of
from stoker.bench.turns import Turns, take_turns
from stoker.flows.bench_targets import choose_service
from stoker.flows.tune_asking import Asking
from stoker.tune.reading import read_rates


def ask_rounds(turns: Turns, prompts: int, for_s: float) -> Iterator[list[float]]:
    """Yields the logarithms of a round's rates, until the time is over."""
    turns.play(-1)  # what is asked first after a rest is slow
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        rates = read_rates(figures_of([turns.play(number) for number in range(prompts)]), "single")
        if len(rates) < prompts:
            raise SystemExit("a request was not answered")
        yield [math.log(rate) for rate in rates]


def paces_of(rounds: Sequence[Sequence[float]]) -> list[float]:
    """Returns how fast each round was, as a logarithm, beside the mean of all. Pure."""
    prompts = [statistics.fmean(each) for each in zip(*rounds, strict=True)]
    return [statistics.fmean(one - own for one, own in zip(each, prompts, strict=True)) for each in rounds]


def main() -> None:
    """Asks, and says it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("--for", type=float, default=160.0, dest="for_s")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--content", default="code")
    parser.add_argument("--pp", type=int, default=128)
    parser.add_argument("--tg", type=int, default=256)
    options = parser.parse_args()
    asking = Asking(contents=(options.content,), prompt_tokens=options.pp, new_tokens=options.tg)
    target, subject = choose_service(options.service, direct=True)
    with ExitStack() as stack:
        turns = take_turns(target, subject.engine, asking.cells()[0], asking.seed, stack)
        paces = paces_of(list(ask_rounds(turns, options.prompts, options.for_s)))
    print(" ".join(f"{math.exp(one):.2f}" for one in paces))
    low, high, spread = math.exp(min(paces)), math.exp(max(paces)), statistics.pstdev(paces)
    each = f"{len(paces)} rounds of {options.prompts}"
    print(f"{each}: {low:.2f} to {high:.2f} of the mean, a standard deviation of {spread:.1%}")


if __name__ == "__main__":
    main()
