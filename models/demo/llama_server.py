"""Runs llama.cpp's server in a child process and asks it for completions."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

START_LIMIT_S = 30.0
ANSWER_LIMIT_S = 60.0
SLOT_CONTEXT = 4096


@dataclass(frozen=True)
class Options:
    """What a server is started with."""

    model: Path
    draft: Path | None = None
    draft_tokens: int = 4
    slots: int = 1
    exact: bool = False


@dataclass(frozen=True)
class Client:
    """Greedy requests to one server."""

    http: httpx.Client

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; raises httpx.HTTPStatusError when the server refuses."""
        reply = self.http.post(path, json=body)
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def complete(self, prompt: str | list[int], tokens: int) -> dict[str, Any]:
        """Greedy continuation of a prompt given as text or as token numbers."""
        body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "return_tokens": True, "cache_prompt": False}
        return self.post("/completion", body)

    def chat(self, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """The assistant's greedy message to a conversation."""
        body = {"messages": messages, "temperature": 0, "max_tokens": 256} | more
        message: dict[str, Any] = self.post("/v1/chat/completions", body)["choices"][0]["message"]
        return message

    def counters(self) -> dict[str, float]:
        """The server's metrics without labels."""
        lines = (line.split() for line in self.http.get("/metrics").text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines if "{" not in name}


def child(options: Options) -> subprocess.Popen[str]:
    """A server process that prints its address once it listens."""
    command = [sys.executable, __file__, str(options.model), "--slots", str(options.slots)]
    if options.draft:
        command += ["--draft", str(options.draft), "--draft-tokens", str(options.draft_tokens)]
    if options.exact:
        command.append("--exact")
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@contextmanager
def server(options: Options) -> Iterator[Client]:
    """A running server, stopped at the end."""
    process = child(options)
    try:
        assert process.stdout
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"the server for {options.model} did not start (exit code {process.wait(START_LIMIT_S)})")
        with httpx.Client(base_url=address, timeout=ANSWER_LIMIT_S) as http:
            yield Client(http)
    finally:
        process.terminate()
        process.communicate(timeout=START_LIMIT_S)


def serve(options: Options) -> None:
    """Starts the server in this process and stays."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(options.model)
    params.n_parallel = options.slots
    params.n_ctx = SLOT_CONTEXT * options.slots
    # One thread: on a busy machine two of them spend their time waiting for each other (10 times slower, seen).
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.enable_reasoning = 0  # thinking is off unless a request asks for it
    params.endpoint_metrics = True
    params.verbosity = 1
    if options.exact:
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if options.draft:
        params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        params.speculative.draft.mparams.path = str(options.draft)
        params.speculative.draft.n_max = options.draft_tokens
    running = xllamacpp.Server(params)
    print(running.listening_address, flush=True)
    while True:
        time.sleep(3600)


def main() -> None:
    """Reads the options and serves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--exact", action="store_true", help="keep keys and values in float32")
    args = parser.parse_args()
    serve(Options(args.model, args.draft, args.draft_tokens, args.slots, args.exact))


if __name__ == "__main__":
    main()
