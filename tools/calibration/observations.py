"""Reads the measurements and turns each into work: what had to be done for a token, and the seconds it took."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stoker.plan.speed.prediction import token_terms
from stoker.plan.speed.rows import Asked, number, read_row
from stoker.plan.speed.schedule import BATCH_TOKENS
from stoker.plan.speed.speculation import USUAL_FIRST_RATE
from stoker.plan.speed.work import Step, Terms, step_terms

DATA = Path(__file__).parent / "gb10.csv"
FIRST_RATES = (0.55, 0.65, 0.7, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.9, 0.95)
LEAST_PREFILL, PREFILL_WEIGHT = 2048, 0.5
JUDGED_ONLY = "judged only"  # nothing is learned from such a row, and its prediction counts like any other
Row = dict[str, str]


@dataclass
class Observation:
    """One measured rate: the work of a token by the first rate that is assumed for drafts, and what it took.

    Where drafts play no part, or how many were accepted is known, the work is the same for all rates.
    """

    line: int
    row: Row
    asked: Asked
    model: str
    seconds: float
    work: dict[float, Terms]
    is_prefill: bool = False
    weight: float = field(default=1.0)

    @property
    def sort(self) -> str | None:
        """The sort of drafting whose usual first rate is assumed; None where none is."""
        drafting = self.asked.drafting
        return drafting.sort if drafting is not None and not drafting.is_measured and not self.is_prefill else None

    def terms(self, first_rates: dict[str, float]) -> Terms:
        """Returns the work with these first rates."""
        return self.work[first_rates[self.sort]] if self.sort else next(iter(self.work.values()))


def read_data(path: Path = DATA) -> list[tuple[int, Row]]:
    """Returns the rows with the number of their line."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(enumerate(csv.DictReader(file), start=2))


def read_observations(rows: list[tuple[int, Row]]) -> list[Observation]:
    """Returns what can be learned from: decode rates, and prefill rates of long prompts that were read alone."""
    used = [(line, row) for line, row in rows if not row["set_aside"] or row["set_aside"].startswith(JUDGED_ONLY)]
    found = [one for line, row in used for one in (_decode(line, row), _prefill(line, row)) if one is not None]
    alike = Counter(_way(one) for one in found)
    for one in found:  # many rows of one way to serve say little more than one
        one.weight = alike[_way(one)] ** -0.5 * (PREFILL_WEIGHT if one.is_prefill else 1.0)
        if one.row["set_aside"]:
            one.weight = 0.0
    return found


def _way(one: Observation) -> tuple[str | bool, ...]:
    row = one.row
    names = ("model", "quant", "engine", "engine_version", "spec_method")
    return (*(row[name] for name in names), row["source"].split(" ")[0], one.is_prefill)


def _decode(line: int, row: Row) -> Observation | None:
    rate, asked = number(row["decode_tok_s"]), read_row(row, USUAL_FIRST_RATE)
    if not rate or isinstance(asked, str):
        return None
    return Observation(line, row, asked, asked.served.shape.names[0], 1 / rate, dict(_work(row, asked)))


def _work(row: Row, asked: Asked) -> Iterator[tuple[float, Terms]]:
    drafting = asked.drafting
    if drafting is None or drafting.is_measured:
        yield 0.0, token_terms(asked)
        return
    for rate in FIRST_RATES:
        other = read_row(row, {drafting.sort: rate})
        assert not isinstance(other, str)  # noqa: S101 - it was read before
        yield rate, token_terms(other)


def _prefill(line: int, row: Row) -> Observation | None:
    rate, prompt = number(row["prefill_tok_s"]), number(row["prompt_tokens"])
    asked = read_row(row, USUAL_FIRST_RATE)
    if not rate or not prompt or isinstance(asked, str) or prompt < LEAST_PREFILL or row["concurrency"] != "1":
        return None
    terms: Terms = defaultdict(float)
    left, depth = prompt, float(asked.burst.depth)
    while left:
        piece = min(left, asked.served.shape.piece or BATCH_TOKENS)
        for factors, amount in step_terms(asked.served, Step(0, prompt=piece, prompt_depth=depth)).items():
            terms[factors] += amount / prompt
        left, depth = left - piece, depth + piece
    return Observation(line, row, asked, asked.served.shape.names[0], 1 / rate, {0.0: dict(terms)}, is_prefill=True)
