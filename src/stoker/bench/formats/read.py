"""Knows a file of results by what is in it, and reads it."""

from __future__ import annotations

from typing import Any

from stoker.bench.formats.llama_benchy_json import read_report
from stoker.bench.formats.llama_benchy_tables import MARKDOWN_HEADERS, read_csv, read_markdown
from stoker.bench.formats.own import read_own
from stoker.bench.formats.serving import read_objects
from stoker.bench.formats.strict import read_json, refusal
from stoker.records import BenchRun

KNOWN = "llama-benchy's JSON, CSV and Markdown, `vllm bench serve` and SGLang's bench_serving, and `stoker bench export`"
TABLE_BEGINS = {f"| {header[0]}" for header in MARKDOWN_HEADERS}


def read_results(text: str, name: str, model: str | None = None) -> BenchRun:
    """Returns the run of a file that goes by a name; `model` is used where it names none. Raises WrongUse."""
    begin = text.lstrip("\ufeff \t\r\n")
    if begin.startswith(("{", "[")):
        return _read_json(begin, name, model)
    if begin.startswith("model,test_name,"):
        return read_csv(begin, name)
    if any(line.startswith(tuple(TABLE_BEGINS)) for line in begin.splitlines()):
        return read_markdown(text, name)
    raise refusal(
        name,
        "nobody's results are known to look like it",
        "what is known is told by what a file begins with",
        f"known: {KNOWN}",
    )


def _read_json(text: str, name: str, model: str | None) -> BenchRun:
    objects = _objects(text, name)
    if not objects or not all(isinstance(one, dict) for one in objects):
        raise refusal(name, "$", "it holds no JSON objects", f"known: {KNOWN}")
    first = objects[0]
    if len(objects) == 1 and "form" in first:
        return read_own(first, name)
    if len(objects) == 1 and "benchmarks" in first and "latency_mode" in first:
        return read_report(first, name)
    if all("output_throughput" in one and "request_rate" in one for one in objects):
        return read_objects(objects, name, model)
    raise refusal(
        name, "$", f"it has {', '.join(sorted(first)[:6]) or 'no fields'}, as no known tool's results do", f"known: {KNOWN}"
    )


def _objects(text: str, name: str) -> list[Any]:
    """Reads one object, a list of them, or one a line, as tools append them."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(_is_whole(line) for line in lines):
        return [read_json(line, f"{name}, line {number}") for number, line in enumerate(lines, start=1)]
    raw = read_json(text, name)
    return raw if isinstance(raw, list) else [raw]


def _is_whole(line: str) -> bool:
    return line.startswith("{") and line.rstrip().endswith("}")
