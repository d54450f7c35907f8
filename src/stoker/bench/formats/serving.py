"""Reads what `vllm bench serve` and SGLang's `bench_serving` save: one JSON object for each time they ran.

Both descend from one program. Objects of the same load are repeats of one cell. With --save-detailed or --output-details the
values of each request are there; without, only means, medians and percentiles.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from stoker.bench.formats.figures import figure_of, mean, number_of
from stoker.bench.formats.llama_benchy import MS
from stoker.bench.formats.strict import NO_LIMIT, Amount, Count, Foreign, Positive, not_kept, read_as, refusal
from stoker.records import BenchCell, BenchFigure, BenchLoad, BenchRun, BenchSubject, CellResult, SpeculationSeen

VLLM, SGLANG = "vllm bench serve", "sglang bench_serving"
STATISTIC = re.compile(r"(mean|median|std|p\d+(?:\.\d+)?)_(ttft|tpot|itl|e2el|e2e_latency)_ms")
FIGURE = {"ttft": "ttft_s", "tpot": "itl_token_s", "itl": "itl_chunk_s", "e2el": "e2e_s", "e2e_latency": "e2e_s"}
DATE = "%Y%m%d-%H%M%S"
CONTENT = "random"  # what both send unless they are told otherwise; vLLM's file does not name its data
# Of the run and its load, or told by figures that are read: nothing is lost by leaving them.
TOLD_ELSEWHERE = frozenset(
    ("backend", "endpoint_type", "label", "total_token_throughput", "total_throughput", "input_throughput", "concurrency",
     "tag", "max_concurrent_requests", "total_input_text_tokens", "total_output_tokens_retokenized", "queue_times", "rtfx",
     "random_input_len", "random_output_len", "random_range_ratio", "sharegpt_output_len", "total_input_vision_tokens")
)  # fmt: skip


class Saved(Foreign, frozen=True):
    """What both save, and what one of them does; values of requests are lists, in the order of their sending."""

    duration: Amount
    completed: Count
    total_input_tokens: Count
    total_output_tokens: Count
    request_throughput: Amount
    output_throughput: Amount
    max_concurrency: Positive | None
    request_rate: Amount | Literal["inf", "trace"]
    burstiness: Amount = 1.0
    failed: Count | None = None
    num_prompts: Positive | None = None
    model_id: str | None = None
    tokenizer_id: str | None = None
    dataset_name: str = CONTENT
    date: str | None = None
    request_goodput: Amount | None = None
    max_output_tokens_per_s: Amount | None = None
    server_info: dict[str, Any] | None = None
    input_lens: tuple[Count, ...] = ()
    output_lens: tuple[Count, ...] = ()
    ttfts: tuple[Amount, ...] = ()
    itls: tuple[tuple[Amount, ...], ...] = ()
    latencies: tuple[Amount, ...] = ()
    errors: tuple[str | None, ...] = ()
    accept_length: Amount | None = None
    spec_decode_acceptance_rate: Amount | None = None
    spec_decode_acceptance_length: Amount | None = None
    spec_decode_num_drafts: Count | None = None
    spec_decode_draft_tokens: Count | None = None
    spec_decode_accepted_tokens: Count | None = None
    spec_decode_per_position_acceptance_rates: tuple[Amount, ...] = ()


class Answered(NamedTuple):
    """One request that was answered, by the values that were saved of it."""

    input_tokens: int
    output_tokens: int
    ttft_s: float
    gaps_s: tuple[float, ...]


def read_objects(raws: Sequence[dict[str, Any]], name: str, model: str | None) -> BenchRun:
    """Returns the run of a file's objects; `model` is used where it names none. Raises WrongUse."""
    all_saved = [read_as(raw, Saved, name, f"object {number}") for number, raw in enumerate(raws, start=1)]
    for number, saved in enumerate(all_saved, start=1):
        _check(saved, name, f"object {number}")
    by_cell: defaultdict[BenchCell, list[int]] = defaultdict(list)
    for place, saved in enumerate(all_saved):
        by_cell[_cell(saved)].append(place)
    cells = tuple(
        _result(cell, [all_saved[one] for one in places], [raws[one] for one in places]) for cell, places in by_cell.items()
    )
    first, tool = all_saved[0], VLLM if "model_id" in raws[0] else SGLANG
    subject = BenchSubject(
        None, _model(all_saved, model, name), engine="sglang" if tool == SGLANG and first.server_info else None
    )
    took_s = sum(saved.duration for saved in all_saved)
    return BenchRun(None, tool, "", _began_at(first, name), took_s, None, True, subject, cells, (), _note(raws))


def _check(saved: Saved, name: str, place: str) -> None:
    if not saved.completed or not saved.total_output_tokens:
        raise refusal(name, f"{place}, completed", "no request of it was answered with a token, so it has no figures")
    lists = {"input_lens": saved.input_lens, "output_lens": saved.output_lens, "itls": saved.itls}
    odd = [field for field, values in lists.items() if len(values) != len(saved.ttfts)]
    if saved.ttfts and odd:
        raise refusal(name, f"{place}, {odd[0]}", f"it has {len(lists[odd[0]])} values, and ttfts {len(saved.ttfts)}")


def _model(all_saved: list[Saved], model: str | None, name: str) -> str:
    told = {saved.model_id or str((saved.server_info or {}).get("model_path", "")) or model for saved in all_saved}
    if len(told) > 1:
        raise refusal(
            name,
            "its objects are of several models",
            ", ".join(sorted(map(str, told))),
            "make a file of each model's objects",
        )
    found = told.pop()
    if found is None:
        raise refusal(
            name, "it names no model", "SGLang saves the model only where its server tells it", "name it with --model"
        )
    return found


def _began_at(saved: Saved, name: str) -> float | None:
    if saved.date is None:
        return None
    try:
        return time.mktime(time.strptime(saved.date, DATE))
    except ValueError:
        raise refusal(name, "object 1, date", f"{saved.date!r} is no time like 20261122-162628") from None


def _note(raws: Sequence[dict[str, Any]]) -> str:
    fields = {field for raw in raws for field in raw if not STATISTIC.fullmatch(field)}
    left = fields - set(Saved.__struct_fields__) - TOLD_ELSEWHERE
    words = {f"{field}={raw[field]}" for raw in raws for field in left if isinstance(raw.get(field), str)}
    rest = {field for field in left if not all(isinstance(raw.get(field), str) for raw in raws if field in raw)}
    return "; ".join(part for part in (", ".join(sorted(words)), not_kept(rest)) if part)


def _cell(saved: Saved) -> BenchCell:
    lengths = (saved.total_input_tokens / saved.completed, saved.total_output_tokens / saved.completed)
    return BenchCell(round(lengths[0]), round(lengths[1]), 0, _load(saved), saved.dataset_name)


def _load(saved: Saved) -> BenchLoad:
    if saved.request_rate == NO_LIMIT:
        return BenchLoad("closed", saved.max_concurrency or saved.num_prompts or saved.completed)
    if isinstance(saved.request_rate, str):
        return BenchLoad("trace", saved.max_concurrency)
    kind: Literal["poisson", "gamma"] = "poisson" if saved.burstiness == 1 else "gamma"
    burstiness = None if kind == "poisson" else saved.burstiness
    return BenchLoad(kind, saved.max_concurrency, saved.request_rate, burstiness)


def _result(cell: BenchCell, repeats: list[Saved], raws: list[dict[str, Any]]) -> CellResult:
    answered = [one for saved in repeats for one in _answered(saved)]
    is_detailed = all(saved.ttfts for saved in repeats)
    figures = [*(_of_requests(answered) if is_detailed else _of_statistics(raws)), *_of_repeats(repeats)]
    failed = None if any(saved.failed is None for saved in repeats) else sum(saved.failed or 0 for saved in repeats)
    asked = None if failed is None else failed + sum(saved.completed for saved in repeats)
    return CellResult(
        cell, tuple(figures), ("the tool's count",), asked, failed, warnings=_warnings(answered),
        speculation=_speculation(repeats),
    )  # fmt: skip


def _answered(saved: Saved) -> list[Answered]:
    errors = saved.errors or ("",) * len(saved.ttfts)
    rows = map(Answered, saved.input_lens, saved.output_lens, saved.ttfts, saved.itls)
    return [row for row, error in zip(rows, errors, strict=False) if not error and row.output_tokens]


def _warnings(answered: list[Answered]) -> tuple[str, ...]:
    lengths: dict[str, list[int]] = {
        "prompts": [one.input_tokens for one in answered], "answers": [one.output_tokens for one in answered],
    }  # fmt: skip
    odd = [f"{what} of {min(told)} to {max(told)} tokens" for what, told in lengths.items() if len(set(told)) > 1]
    measured = ("lengths are means of what was measured; the file does not tell what was asked",)
    return (*measured, *odd)


def _of_requests(answered: list[Answered]) -> list[BenchFigure]:
    several = [one for one in answered if one.output_tokens > 1 and sum(one.gaps_s) > 0]
    per_token = [sum(one.gaps_s) / (one.output_tokens - 1) for one in several]
    values = {
        "ttft_s": [one.ttft_s for one in answered],
        "itl_token_s": per_token,
        "itl_chunk_s": [mean(one.gaps_s) for one in several],
        "request_decode_tps": [1 / each for each in per_token],
        "e2e_s": [one.ttft_s + sum(one.gaps_s) for one in answered],
    }
    return [figure_of(name, "request", told) for name, told in values.items() if told]


def _of_statistics(raws: list[dict[str, Any]]) -> list[BenchFigure]:
    """Makes one number of each statistic; over several repeats, the median of what each of them told.

    Of the gaps between chunks only the mean: the rest is of single gaps, and itl_chunk_s of requests.
    """
    told: defaultdict[str, list[float]] = defaultdict(list)
    for raw in raws:
        for field, value in raw.items():
            found = STATISTIC.fullmatch(field)
            if found and isinstance(value, int | float) and (found[2] != "itl" or found[1] == "mean"):
                name = FIGURE[found[2]]
                told[name if found[1] == "median" else f"{found[1]}_{name}"].append(value / MS)
    return [number_of(name, "request", statistics.median(values)) for name, values in told.items()]


def _of_repeats(repeats: list[Saved]) -> list[BenchFigure]:
    values: dict[str, list[float | None]] = {
        "total_e2e_tps": [saved.output_throughput for saved in repeats],
        "requests_per_s": [saved.request_throughput for saved in repeats],
        "goodput_per_s": [saved.request_goodput for saved in repeats],
        "total_peak_tps": [saved.max_output_tokens_per_s for saved in repeats],
    }
    known = {name: [value for value in told if value is not None] for name, told in values.items()}
    return [figure_of(name, "repeat", told) for name, told in known.items() if len(told) == len(repeats)]


def _speculation(repeats: list[Saved]) -> SpeculationSeen | None:
    told = [saved for saved in repeats if saved.spec_decode_num_drafts and saved.spec_decode_draft_tokens]
    if not told:
        lengths = [saved.accept_length for saved in repeats if saved.accept_length is not None]
        length = statistics.median(lengths) if lengths else None
        return (
            None if length is None else SpeculationSeen("the server's mean since its start", None, None, None, None, length)
        )
    drafts = [saved.spec_decode_num_drafts or 0 for saved in told]
    proposed = sum(saved.spec_decode_draft_tokens or 0 for saved in told)
    accepted = sum(saved.spec_decode_accepted_tokens or 0 for saved in told)
    most = max(len(saved.spec_decode_per_position_acceptance_rates) for saved in told)
    by_position = tuple(
        sum(count * (saved.spec_decode_per_position_acceptance_rates[place : place + 1] or (0.0,))[0]
            for saved, count in zip(told, drafts, strict=True)) / sum(drafts)
        for place in range(most)
    )  # fmt: skip
    return SpeculationSeen(
        "vLLM's counters",
        proposed,
        accepted,
        sum(drafts),
        accepted / proposed,
        1 + accepted / sum(drafts),
        by_position or None,
    )
