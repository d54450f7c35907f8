"""The tools that are compared: the words that each is called with, and where it leaves its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Job(NamedTuple):
    """What a tool is to measure; `out` is a folder for what it writes."""

    url: str
    model: str
    tokenizer: str
    book_url: str
    prompt_tokens: int
    tokens: int
    concurrency: int
    requests: int
    out: Path


class Tool(NamedTuple):
    """How a tool is called, and how its result is read: ttft_ms, itl_ms, prefill_tps, tps_total, as far as it has them.

    `window` says what its total rate is a rate of: `decode`, from the first token to the last, or `e2e`, from the request.
    """

    words: Callable[[Job], list[str]]
    result: Callable[[Job], dict[str, Any]]
    window: str


def _load(file: Path) -> Any:
    return json.loads(file.read_text())


def _simple(job: Job) -> list[str]:
    return [
        "--base-url", f"{job.url}/v1", "--model", job.model, "--prompt-tokens", str(job.prompt_tokens), "--tokens",
        str(job.tokens), "--concurrency", str(job.concurrency), "--requests", str(job.requests), "--tokenizer",
        job.tokenizer, str(job.out / "result.json"),
    ]  # fmt: skip


def _llama_benchy(job: Job) -> list[str]:
    return [
        "--base-url", f"{job.url}/v1", "--model", job.model, "--tokenizer", job.tokenizer, "--book-url", job.book_url,
        "--pp", str(job.prompt_tokens), "--tg", str(job.tokens), "--concurrency", str(job.concurrency),
        "--runs", str(max(1, job.requests // job.concurrency)), "--no-cache", "--skip-coherence", "--latency-mode", "api",
        "--format", "json", "--save-result", str(job.out / "result.json"),
    ]  # fmt: skip


def _read_llama_benchy(job: Job) -> dict[str, Any]:
    row = _load(job.out / "result.json")["benchmarks"][0]
    means = {name: (row.get(name) or {}).get("mean") for name in row if name.startswith(("tg_", "pp_", "e2e"))}
    each = means["tg_req_throughput"]
    return {
        "ttft_ms": means["e2e_ttft"], "itl_ms": 1e3 / each if each else None, "prefill_tps": means["pp_req_throughput"],
        "tps_total": means["tg_throughput"],
    }  # fmt: skip


def _guidellm(job: Job) -> list[str]:
    return [
        "run", "--backend", f"kind=openai_http,target={job.url},model={job.model}",
        "--profile", f"kind=concurrent,streams={job.concurrency}", "--constraint", f"kind=max_requests,count={job.requests}",
        "--tokenizer", f"kind=huggingface_auto,model={job.tokenizer}",
        "--data", f"kind=synthetic_text,prompt_tokens={job.prompt_tokens},output_tokens={job.tokens}",
        "--output", f"kind=json,path={job.out / 'result.json'}", "--disable-console",
    ]  # fmt: skip


def _read_guidellm(job: Job) -> dict[str, Any]:
    metrics = _load(job.out / "result.json")["benchmarks"][0]["metrics"]
    names = {
        "ttft_ms": "time_to_first_token_ms", "itl_ms": "inter_token_latency_ms", "tps_total": "output_tokens_per_second",
    }  # fmt: skip
    return {ours: metrics[theirs]["successful"]["mean"] for ours, theirs in names.items()}


def _aiperf(job: Job) -> list[str]:
    return [
        "profile", "-m", job.model, "--url", job.url, "--endpoint-type", "chat", "--streaming", "--tokenizer", job.tokenizer,
        "--isl", str(job.prompt_tokens), "--isl-stddev", "0", "--osl", str(job.tokens), "--osl-stddev", "0",
        "--concurrency", str(job.concurrency), "--request-count", str(job.requests),
        "--warmup-request-count", str(job.concurrency), "--ui", "none", "--no-gpu-telemetry", "--artifact-dir", str(job.out),
    ]  # fmt: skip


def _read_aiperf(job: Job) -> dict[str, Any]:
    data = _load(job.out / "profile_export_aiperf.json")
    names = {
        "ttft_ms": "time_to_first_token", "itl_ms": "inter_token_latency", "prefill_tps": "prefill_throughput_per_user",
        "tps_total": "output_token_throughput",
    }  # fmt: skip
    return {ours: data[theirs]["avg"] for ours, theirs in names.items() if theirs in data}


def _engine_bench(backend: str, job: Job) -> list[str]:
    return [
        "--backend", backend, "--model", job.model, "--tokenizer", job.tokenizer, "--random-input-len",
        str(job.prompt_tokens), "--random-output-len", str(job.tokens), "--num-prompts", str(job.requests),
        "--max-concurrency", str(job.concurrency), "--base-url", job.url, "--disable-tqdm",
    ]  # fmt: skip


def _vllm(job: Job) -> list[str]:
    return [
        *_engine_bench("openai-chat", job), "--endpoint", "/v1/chat/completions", "--dataset-name", "random",
        "--num-warmups", str(job.concurrency), "--ignore-eos", "--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result",
        "--result-dir", str(job.out), "--result-filename", "result.json",
    ]  # fmt: skip


def _sglang(job: Job) -> list[str]:
    return [
        *_engine_bench("sglang-oai-chat", job), "--dataset-name", "random-ids", "--random-range-ratio", "1.0",
        "--warmup-requests", str(job.concurrency), "--output-file", str(job.out / "result.json"),
    ]  # fmt: skip


def _read_engine_bench(job: Job) -> dict[str, Any]:
    data = json.loads((job.out / "result.json").read_text().splitlines()[-1])
    names = {"ttft_ms": "mean_ttft_ms", "itl_ms": "mean_tpot_ms", "tps_total": "output_throughput"}
    return {ours: data[theirs] for ours, theirs in names.items()}


TOOLS = {
    "stoker": Tool(_simple, lambda job: _load(job.out / "result.json"), "decode"),
    "llama-benchy": Tool(_llama_benchy, _read_llama_benchy, "decode"),
    "guidellm": Tool(_guidellm, _read_guidellm, "e2e"),
    "aiperf": Tool(_aiperf, _read_aiperf, "e2e"),
    "vllm-bench": Tool(_vllm, _read_engine_bench, "e2e"),
    "sglang-bench": Tool(_sglang, _read_engine_bench, "e2e"),
}
