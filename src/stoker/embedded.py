"""The embedded llama.cpp server as a program of its own: reads llama-server's words, serves until it is told to stop.

It lives in its own process because a crash in a C++ engine must not take the daemon along, and so that the engine
outlives a daemon that is killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

SPECULATION_TYPES = {
    "draft-simple": "COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE",
    "ngram-simple": "COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE",
    "ngram-mod": "COMMON_SPECULATIVE_TYPE_NGRAM_MOD",
    "ngram-map-k": "COMMON_SPECULATIVE_TYPE_NGRAM_MAP_K",
}


def parse_words(words: list[str]) -> argparse.Namespace:
    """Returns llama-server's options that Stoker uses."""
    parser = argparse.ArgumentParser(prog="stoker-embedded", allow_abbrev=False, description=__doc__)
    for switch in ("--model", "--alias", "--host", "--spec-type", "--spec-draft-model", "--reasoning"):
        parser.add_argument(switch)
    for switch in ("--port", "--ctx-size", "--parallel", "--n-gpu-layers", "--threads", "--spec-draft-n-max",
                   "--spec-ngram-simple-size-n", "--spec-ngram-simple-size-m", "--batch-size", "--ubatch-size",
                   "--cache-ram"):  # fmt: skip
        parser.add_argument(switch, type=int)
    for switch in ("--metrics", "--jinja", "--no-webui"):
        parser.add_argument(switch, action="store_true")
    parser.add_argument("--embeddings", "--embedding", action="store_true")
    parser.add_argument("--pooling", choices=("none", "mean", "cls", "last", "rank"))
    return parser.parse_args(words)


def make_parameters(options: argparse.Namespace, key: str | None) -> Any:
    """Returns xllamacpp's CommonParams for these options."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.hostnames = [options.host]
    parameters.port = options.port
    parameters.endpoint_metrics = options.metrics
    parameters.use_jinja = options.jinja
    parameters.ui = not options.no_webui
    parameters.cors_origins = ""  # the default lets any web page of the user's browser ask the engine
    parameters.api_keys = [key] if key else []
    _set_if_given(parameters, "n_ctx", options.ctx_size)
    _set_if_given(parameters, "n_parallel", options.parallel)
    _set_if_given(parameters, "n_gpu_layers", options.n_gpu_layers)
    _set_if_given(parameters, "n_batch", options.batch_size)
    _set_if_given(parameters, "n_ubatch", options.ubatch_size)
    _set_if_given(parameters, "cache_ram_mib", options.cache_ram)
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        _set_if_given(threads, "n_threads", options.threads)
    parameters.embedding = options.embeddings
    if options.pooling:
        parameters.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{options.pooling.upper()}")
    if options.reasoning:
        parameters.enable_reasoning = {"auto": -1, "on": 1, "off": 0}[options.reasoning]
    _set_speculation(xllamacpp, parameters.speculative, options)
    return parameters


def _set_if_given(parameters: Any, name: str, value: int | None) -> None:
    if value is not None:
        setattr(parameters, name, value)


def _set_speculation(xllamacpp: Any, speculative: Any, options: argparse.Namespace) -> None:
    if options.spec_type is None:
        return
    kind = getattr(xllamacpp.common_speculative_type, SPECULATION_TYPES[options.spec_type])
    speculative.types = [kind]
    if options.spec_draft_model:
        speculative.draft.mparams.path = options.spec_draft_model
    _set_if_given(speculative.draft, "n_max", options.spec_draft_n_max)
    _set_if_given(speculative.ngram_simple, "size_n", options.spec_ngram_simple_size_n)
    _set_if_given(speculative.ngram_simple, "size_m", options.spec_ngram_simple_size_m)
    _set_if_given(speculative.draft.cpuparams, "n_threads", options.threads)
    _set_if_given(speculative.draft.cpuparams_batch, "n_threads", options.threads)


def main(words: list[str] | None = None) -> None:
    """Serves until SIGTERM or SIGINT; exits with 1 where the model cannot be loaded."""
    options = parse_words(sys.argv[1:] if words is None else words)
    wanted = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)  # before llama.cpp starts its threads, so that they inherit it
    parameters = make_parameters(options, os.environ.get("LLAMA_API_KEY"))
    import xllamacpp

    try:
        server = xllamacpp.Server(parameters)
    except Exception as problem:  # noqa: BLE001 - whatever the C++ side throws, the log shall say it in one line
        print(f"the embedded server did not start: {problem}", file=sys.stderr, flush=True)  # noqa: T201
        sys.exit(1)  # not os._exit: llama.cpp logs from a thread of its own, and only a clean end waits for its last lines
    print(f"listening on {server.listening_address}", file=sys.stderr, flush=True)  # noqa: T201
    signal.sigwait(wanted)
    # llama.cpp's own shutdown waits for running requests; Stoker has drained them already or wants them gone.
    os._exit(0)


if __name__ == "__main__":
    main()
