"""Reads a row in the columns of published measurements: what was served and asked, never what was measured. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.schedule import Burst
from stoker.plan.speed.speculation import USUAL_DRAFT_TOKENS, Drafting, expected_length, sort_of, usual_rates
from stoker.plan.speed.work import Served
from stoker.records import Record

COLUMNS = ("model", "total_params_b", "active_params_b", "weights_gb", "quant", "engine", "engine_version",
           "attention_backend", "spec_method", "num_spec_tokens", "accept_rate_or_len", "prompt_tokens", "depth",
           "concurrency", "note")  # fmt: skip
UNKNOWN = frozenset(("", "na", "n/a", "nan", "none", "null", "-", "?"))
ENGINES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llama": "llamacpp",
    "ollama": "ollama",
    "lm studio": "llamacpp",
    "trt": "vllm",
}
NUMBER = re.compile(r"(\d+(?:\.\d+)?)(k\b)?")
MOST_REQUESTS, MOST_TOKENS = 1024, 2_000_000
USUAL_ANSWER, USUAL_PROMPT = 256, 300


class Asked(Record, frozen=True):
    """What a row says was served and asked, and how far its words could be understood."""

    served: Served
    burst: Burst
    drafting: Drafting | None
    replicas: int = 1
    is_known: bool = True


def number(text: str | None) -> float | None:
    """Returns the number in a cell, the middle of a range; None where there is none."""
    if text is None or text.strip().lower() in UNKNOWN:
        return None
    found = [float(digits) * (1000 if unit else 1) for digits, unit in NUMBER.findall(text.replace(",", "").lower())][:2]
    return sum(found) / len(found) if found else None


def read_row(row: Mapping[str, str], first_rates: Mapping[str, float]) -> Asked | str:
    """Returns what the row says, or why nothing can be said of it."""
    name = row.get("model") or ""
    total, active = number(row.get("total_params_b")), number(row.get("active_params_b"))
    note, engine = (row.get("note") or "").lower(), _engine(row.get("engine") or "")
    weights_gb = number(row.get("weights_gb"))
    shape = find_shape(name, total, active)
    if shape is None:
        return f"nothing is known of the size of {name or 'a model without a name'}"
    words = f"{(row.get('engine_version') or '').lower()} {note}"
    layout = plan_layout(shape, row.get("quant") or "", engine, weights_gb, words)
    tp, replicas = _boxes(note)
    served = Served(shape, layout, engine, boxes=tp, is_eager="eager" in note)
    drafting = _drafting(row, note, engine, first_rates)
    replicas = max(1, min(replicas, int(number(row.get("concurrency")) or 1)))
    return Asked(served, _burst(row, note, engine, drafting, replicas), drafting, replicas, is_known=not layout.is_guess)


def _engine(name: str) -> str:
    said = name.lower()
    return next((engine for word, engine in ENGINES.items() if word in said), "other")


def _boxes(note: str) -> tuple[int, int]:
    """Returns how many machines share each layer, and how many serve for themselves."""
    if found := re.search(r"(\d)x solo", note):
        return 1, int(found[1])
    if "solo" in note:
        return 1, 1
    found = re.search(r"\btp\s*=?\s*(\d)", note) or re.search(r"(\d) (?:dgx )?(?:sparks?|nodes?|boxes)\b", note)
    return (max(1, int(found[1])), 1) if found else (1, 1)


def _drafting(row: Mapping[str, str], note: str, engine: str, first_rates: Mapping[str, float]) -> Drafting | None:
    sort = sort_of(row.get("spec_method") or "")
    if sort is None:
        return None
    tokens = min(64, max(1, int(number(row.get("num_spec_tokens")) or USUAL_DRAFT_TOKENS[sort])))
    if sort == "eagle" and engine == "sglang" and tokens > 1:
        tokens -= 1  # SGLang counts the token that is verified besides
    said = re.search(r"\b(code|coding|prose|summary)\b", note)
    content = {"coding": "code", "summary": "prose"}.get(said[1], said[1]) if said else None
    length = accept_length_of(row.get("accept_rate_or_len") or "", tokens)
    if length is None:
        return Drafting(sort, tokens, expected_length(usual_rates(sort, tokens, content, first_rates)))
    return Drafting(sort, tokens, length, is_measured=True)


def accept_length_of(said: str, draft_tokens: int) -> float | None:
    """Returns the tokens a verify step gave: 'len 2.5-3.5' is a length, '0.76 code' a rate; the first counts."""
    plain = re.sub(r"\([^)]*\)", "", said.lower())
    found = number(plain.split("/")[0])
    if found is None:
        return None
    if "len" in said or found > 1:
        return min(found, draft_tokens + 1.0)
    return 1 + found * draft_tokens


def _burst(row: Mapping[str, str], note: str, engine: str, drafting: Drafting | None, replicas: int) -> Burst:
    prompt = min(MOST_TOKENS, int(number(row.get("prompt_tokens")) or USUAL_PROMPT))
    depth = min(MOST_TOKENS, int(number(row.get("depth")) or 0))
    together = min(MOST_REQUESTS, max(1, int(number(row.get("concurrency")) or 1)))
    capped = re.search(r"max-num-seqs ([1-9]\d{0,3})\b", note)
    alone = engine == "llamacpp" or "batched-bench" in note
    answer = re.search(r"\btg\s?(\d+)", note)
    return Burst(
        requests=-(-together // replicas),
        prompt=prompt,
        depth=depth,
        answer=min(MOST_TOKENS, max(1, int(answer[1]))) if answer else USUAL_ANSWER,
        gained=drafting.accept_length if drafting else 1.0,
        verified=drafting.draft_tokens + 1.0 if drafting else 1.0,
        ends_early=not alone and together > 1 and answer is not None,
        reads_prompts=together > 1 and not alone,
        most_at_once=int(capped[1]) if capped else 4 if "concurrency capped" in note else 256,
    )
