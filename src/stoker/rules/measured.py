"""What others measured on GB10 machines: decode rates for one request at a time, by model, quantisation, engine and draft.

`data/measured/decode.csv`: rates in tokens a second, least and most over the runs of one source; one machine, short context.
"""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

from stoker.records import Record

FILE = Path(__file__).parent / "data" / "measured" / "decode.csv"
# Words of a name that tell how the weights are stored or tuned, not which model it is.
NOT_THE_MODEL = frozenset(
    ("nvfp4", "mxfp4", "fp8", "bf16", "fp16", "awq", "gptq", "gguf", "int4", "int8", "it", "instruct", "nvidia", "dynamic")
)


class Measured(Record, frozen=True):
    """The rates of one way to serve a model, from one source."""

    model: str
    quantisation: str
    engine: str
    speculation: str
    draft_tokens: str
    version: str
    least_tok_s: float
    most_tok_s: float
    runs: int
    source: str


@cache
def load_measured() -> tuple[Measured, ...]:
    """Returns all rows."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(_row(row) for row in csv.DictReader(file))


def _row(row: dict[str, str]) -> Measured:
    numbers = {"least_tok_s": float(row["least_tok_s"]), "most_tok_s": float(row["most_tok_s"]), "runs": int(row["runs"])}
    words = {name: value for name, value in row.items() if name not in numbers}
    return Measured(**words, **numbers)  # type: ignore[arg-type]


def words_of_name(name: str) -> frozenset[str]:
    """Returns the words of a model's name that tell which model it is: 'org/Qwen3.6-27B-FP8' gives qwen, 3.6 and 27b."""
    spaced = re.sub(r"(?<=[a-z])(?=\d)", "-", name.rsplit("/", 1)[-1].lower())
    return frozenset(word for word in re.split(r"[-_\s]+", spaced) if word and word not in NOT_THE_MODEL)


def measured_for(*names: str) -> list[Measured]:
    """Returns the rows of a model that goes by any of these names, the fastest first."""
    wanted = [words_of_name(name) for name in names if words_of_name(name)]
    found = [row for row in load_measured() if any(_same(words_of_name(row.model), words) for words in wanted)]
    return sorted(found, key=lambda row: -row.most_tok_s)


def _same(row: frozenset[str], words: frozenset[str]) -> bool:
    """One name may say more than the other, but both have to tell the family and the size."""
    return (row <= words or words <= row) and len(row & words) > 1
