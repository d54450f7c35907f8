"""`docs/measured/prediction.md`: how well the speed is predicted, from the predictions of models that were left out."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stoker.plan.speed.prediction import load_fit

FOLDER = Path(__file__).parent.parent / "calibration"
KINDS = {"plain": "decode, no drafts", "drafted": "decode, drafted", "prefill": "prompts read alone"}
FARTHEST, TARGETS = 20, {"plain": "12 %", "drafted": "18 %", "prefill": "-"}
NOTE = "<!-- Written by tools/make_docs.py from tools/calibration/ and the fit. -->"
ABOUT = """\
{rows} published rates of GB10 machines, none of them measured by us, were predicted by a fit that had never seen the
model they are of: {models} models (the same shape in another quantisation, fine-tune or release counts as the same
model), {models} fits. The interval of a left-out model comes from the other models' misses. `python tools/calibrate.py`
makes the fit and these predictions again, and the same files each time; [how it works](../predicting.md).

The form of the model, what is read of a row and what is expected before any data was chosen while looking at all of these
rows, so new rows may be predicted somewhat worse than the table says. Rows of one source and one way to serve resemble
each other: the column by models counts each model once."""
CLAIMS = """\
One request at a time, and no drafting that is stated: these rates cannot be decode rates of the machines and the weights
that are named, as far as those are known here, since their bytes do not pass the memory's nominal 273 GB/s in the time.
Drafting that is not stated would explain some. The rows are kept, and the fit gives outliers little weight. (With many
requests of a mixture the limit itself rests on how many different experts they want together; rates above that are no
contradiction.)"""
SEEDS = """\
- *10 to 11 tok/s without drafting for a 27B in FP8*: an estimate from accept lengths. {dense_gb:.1f} GB a token allow
  {dense_limit:.1f} tok/s; {dense:.1f} ({dense_low:.1f} to {dense_high:.1f}) are predicted, and 7.7 to 7.9 were measured
  elsewhere.
- *Ministral 3 in BF16*: 52 and 25 tok/s need more than 350 GB/s with 16-bit weights. The releases are stored in FP8, and are
  predicted so."""


class Line(NamedTuple):
    """A left-out prediction."""

    line: int
    model: str
    kind: str
    measured: float
    predicted: float
    low: float
    high: float
    limit: float | None

    @property
    def miss(self) -> float:
        """How far the prediction is from what was measured, as a share of it."""
        return self.predicted / self.measured - 1

    @property
    def is_inside(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.low <= self.measured <= self.high


def pages() -> dict[str, str]:
    """Returns the page."""
    lines = read_lines(FOLDER / "left_out.csv")
    rows = dict(enumerate(csv.DictReader((FOLDER / "gb10.csv").open(encoding="utf-8", newline="")), start=2))
    decode = [line for line in lines if line.kind != "prefill"]
    text = ["# How well the speed is predicted", "", NOTE, ""]
    text += [ABOUT.format(rows=len(lines), models=len({line.model for line in lines})), "", *_summary(lines), ""]
    text += [
        "## By model",
        "",
        *_by_model(lines),
        "",
        "## Faster than the memory allows",
        "",
        CLAIMS,
        "",
        *_claims(decode, rows),
    ]
    text += [
        "",
        *_seeds(),
        "",
        "## Farthest off",
        "",
        *_farthest(decode, rows),
        "",
        "## Not used, or only judged",
        "",
        *_aside(rows),
    ]
    text += ["", "## The factors", "", *_factors()]
    return {"measured/prediction.md": "\n".join(text) + "\n"}


def read_lines(path: Path) -> list[Line]:
    """Returns the predictions."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_line(row) for row in csv.DictReader(file)]


def _line(row: dict[str, str]) -> Line:
    numbers = [float(row[name]) for name in ("measured_tok_s", "predicted_tok_s", "low_tok_s", "high_tok_s")]
    limit = float(row["limit_tok_s"]) if row["limit_tok_s"] else None
    return Line(int(row["line"]), row["model"], row["kind"], numbers[0], numbers[1], numbers[2], numbers[3], limit)


def median(values: Sequence[float]) -> float:
    """Returns the middle of the values, the upper one of two."""
    return sorted(values)[len(values) // 2]


def _summary(lines: list[Line]) -> list[str]:
    head = "| what | rows | models | median error | wanted | median over models | in the 80 % interval | high by low |"
    found = [head, "| --- " * 8 + "|"]
    for kind, name in [*KINDS.items(), ("", "all decode rates")]:
        ours = [line for line in lines if line.kind == kind or (not kind and line.kind != "prefill")]
        models = _models(ours)
        cells = (name, len(ours), len(models), f"{median([abs(line.miss) for line in ours]):.1%}", TARGETS.get(kind, "-"),
                 f"{median([median([abs(line.miss) for line in some]) for some in models.values()]):.1%}",
                 f"{sum(line.is_inside for line in ours) / len(ours):.1%}",
                 f"{median([line.high / line.low for line in ours]):.2f}")  # fmt: skip
        found.append(f"| {' | '.join(map(str, cells))} |")
    return found


def _models(lines: list[Line]) -> dict[str, list[Line]]:
    models: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        models[line.model].append(line)
    return models


def _by_model(lines: list[Line]) -> list[str]:
    found = ["| model left out | what | rows | median error | predicted by measured | in the interval |", "| --- " * 6 + "|"]
    for model, some in sorted(_models(lines).items()):
        for kind, name in KINDS.items():
            ours = [line for line in some if line.kind == kind]
            if ours:
                by = math.exp(median([math.log(line.predicted / line.measured) for line in ours]))
                inside = sum(line.is_inside for line in ours)
                error = median([abs(line.miss) for line in ours])
                found.append(f"| {model} | {name} | {len(ours)} | {error:.1%} | {by:.2f} | {inside} of {len(ours)} |")
    return found


def _named(row: dict[str, str]) -> str:
    drafts = "" if row["spec_method"] in ("none", "NA") else f", {row['spec_method']} {row['num_spec_tokens']}"
    return f"{row['model']}, {row['quant']}, {row['engine']}{drafts}, {row['concurrency']} at once"


def _claims(lines: list[Line], rows: dict[int, dict[str, str]]) -> list[str]:
    found = ["| claim | tok/s | allowed | predicted | source |", "| --- | --- | --- | --- | --- |"]
    alone = [line for line in lines if line.kind == "plain" and rows[line.line]["concurrency"] == "1"]
    above = [line for line in alone if line.limit is not None and line.measured > line.limit]
    for line in sorted(above, key=lambda line: -line.measured / (line.limit or 1)):
        row = rows[line.line]
        figures = f"{line.measured:g} | {line.limit:.3g} | {line.predicted:.3g}"
        found.append(f"| {_named(row)} | {figures} | {row['source']} |")
    return found


def _seeds() -> list[str]:
    from stoker.plan.speed.prediction import predict_row

    row = {"model": "Qwen3.6-27B", "quant": "FP8", "engine": "SGLang", "concurrency": "1"}
    found = predict_row(row, load_fit())
    if isinstance(found, str):
        raise SystemExit(found)
    read_gb = 273 / found.limit_tok_s
    return SEEDS.format(
        dense_gb=read_gb, dense_limit=found.limit_tok_s, dense=found.decode_tok_s, dense_low=found.low_tok_s,
        dense_high=found.high_tok_s,
    ).split("\n")  # fmt: skip


def _farthest(lines: list[Line], rows: dict[int, dict[str, str]]) -> list[str]:
    found = ["| what | measured | predicted | interval | source |", "| --- | --- | --- | --- | --- |"]
    for line in sorted(lines, key=lambda line: -abs(math.log(line.predicted / line.measured)))[:FARTHEST]:
        interval = f"{line.low:.3g} to {line.high:.3g}"
        figures = f"{line.measured:g} | {line.predicted:.3g} | {interval}"
        found.append(f"| {_named(rows[line.line])} | {figures} | {rows[line.line]['source']} |")
    return found


def _aside(rows: dict[int, dict[str, str]]) -> list[str]:
    found = ["| what | tok/s | why |", "| --- | --- | --- |"]
    return found + [
        f"| {_named(row)} | {row['decode_tok_s']} | {row['set_aside']} |" for row in rows.values() if row["set_aside"]
    ]


def _factors() -> list[str]:
    fit = load_fit()
    found = ["Seconds for a GB, a TFLOP, a layer, a request or a draft; what has a point in its name multiplies that.", ""]
    found += ["| factor | value |", "| --- | --- |", *(f"| `{name}` | {value:.4g} |" for name, value in fit.factors.items())]
    usual = ", ".join(f"{sort} {rate:g}" for sort, rate in fit.first_rates.items())
    return [*found, "", f"How often the first draft token is right, where nobody says so: {usual}."]
