"""The cache of llama.cpp is counted as wide as the flags of its types make it."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from known import report_of

from stoker.config import demo_model
from stoker.facts.model.read import read_model
from stoker.plan.budget import CACHE, SIXTEEN_BIT_BYTES, kv_bytes_of
from stoker.plan.cache_type import cache_value_bytes
from stoker.records import MIB, Report, Setting
from support import make_model

SERVER = "/usr/bin/llama-server"
MODEL = make_model(kv_bytes_per_token=320_000)


def report(**said: Any) -> Report:
    return report_of("llamacpp", MODEL, version="b11549", server=SERVER, context=1000, parallel=2, **said)


def line_of(made: Report, name: str) -> int:
    assert made.budget is not None
    return next(line.need_bytes for line in made.budget.lines if line.name == name)


@pytest.mark.parametrize(
    ("said", "bytes_a_token"),
    [
        ({}, 320_000),
        ({"flags": {"cache-type-k": "q8_0", "cache-type-v": "q8_0"}}, 170_000),
        ({"flags": {"cache-type-k": "q4_0", "cache-type-v": "q8_0"}}, 170_000),
        ({"flags": {"cache-type-k": "q8_0"}}, 320_000),
        ({"flags": {"cache-type-k": "f32"}}, 640_000),
        ({"flags": {"cache-type-k": "odd", "cache-type-v": "q8_0"}}, 320_000),
        ({"environment": {"LLAMA_ARG_CACHE_TYPE_K": "q4_0", "LLAMA_ARG_CACHE_TYPE_V": "q4_0"}}, 90_000),
    ],
)
def test_it_is_counted_at_the_width_of_the_wider_of_keys_and_values(said: dict[str, Any], bytes_a_token: int) -> None:
    made = report(**said)
    assert line_of(made, CACHE) == 2000 * bytes_a_token
    assert made.budget is not None
    assert (made.budget.kv_tokens, made.budget.kv_requests) == (2000, 2.0)
    assert sum(line.need_bytes for line in made.budget.lines) == made.plan.memory_need_bytes


def test_the_prompt_cache_is_as_large_as_that() -> None:
    narrow = report(flags={"cache-type-k": "q8_0", "cache-type-v": "q8_0"})
    assert line_of(narrow, "prompt cache") < line_of(report(), "prompt cache")


LOAD = """
import sys, xllamacpp
words = xllamacpp.CommonParams()
words.model.path, words.n_ctx, words.n_parallel, words.verbosity = sys.argv[1], 2048, 1, 4
words.cache_type_k = words.cache_type_v = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + sys.argv[2])
xllamacpp.Server(words)
"""


@pytest.mark.parametrize("kind", ["f16", "q8_0", "q4_0"])
def test_the_engine_takes_what_is_counted(kind: str) -> None:
    path = demo_model()
    argv = [sys.executable, "-u", "-c", LOAD, str(path), kind.upper()]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as engine:
        assert engine.stdout is not None
        found = (re.search(r"KV buffer size = +([\d.]+) MiB", line) for line in engine.stdout)
        mib = next(one[1] for one in found if one)
        engine.kill()  # one that ends while it still warms up may wait for itself for ever
    value_bytes = cache_value_bytes([Setting(f"--cache-type-{of}", kind, "you asked for it") for of in "kv"])
    assert (value_bytes == SIXTEEN_BIT_BYTES) is (kind == "f16")
    assert float(mib) == pytest.approx(kv_bytes_of([read_model(path)], 2048, value_bytes) / MIB, abs=0.01)
