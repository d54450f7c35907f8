"""Whether vectors are numbers, the same for the same text, and nearer for texts that are near."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Declined, Finding, Trouble, degraded, failed, not_offered, passed
from stoker.probes.kit.probe import Probe
from stoker.probes.kit.reply import read_json

TEXTS = ("a cat sat on a mat", "a cat sat on the mat", "interest rates rose in March")
NEAR = 1e-3


class _Item(msgspec.Struct):
    embedding: list[float]
    index: int = 0


class _Vectors(msgspec.Struct):
    data: list[_Item]


async def vectors(ask: Asker) -> Finding:
    """Three texts get three vectors of finite numbers and one length, in their order."""
    try:
        found = await _embed(ask, TEXTS)
    except Declined as no:
        return not_offered(no.says)
    if len(found) != len(TEXTS) or len({len(one) for one in found}) != 1 or not found[0]:
        return failed(f"{len(TEXTS)} texts got vectors of the lengths {[len(one) for one in found]}")
    if not all(math.isfinite(value) for one in found for value in one) or not any(found[0]):
        return failed("its vectors hold zeros alone, or what is no number")
    if _cosine(found[0], found[1]) <= _cosine(found[0], found[2]):
        return degraded(
            "two texts that differ in a word are no nearer than two that share none", "is it a model for embeddings?"
        )
    return passed(f"{len(found)} vectors of {len(found[0])} numbers; near texts are near")


async def same_twice(ask: Asker) -> Finding:
    """The same text gets the same vector, alone or among others."""
    try:
        alone, among = (await _embed(ask, TEXTS[:1]))[0], (await _embed(ask, TEXTS))[0]
    except Declined as no:
        return not_offered(no.says)
    away = 1 - _cosine(alone, among)
    if away > NEAR:
        return degraded(
            f"alone and among others one text's vectors differ (1 - cosine = {away:.4f})", "an index made so finds less"
        )
    return passed("the same vector alone and among others")


async def _embed(ask: Asker, texts: Sequence[str]) -> list[list[float]]:
    body = read_json(await ask.send("/embeddings", {"model": ask.target.model, "input": list(texts)}))
    try:
        items = msgspec.convert(body, _Vectors).data
    except msgspec.ValidationError as problem:
        raise Trouble(f"its answer holds no vectors: {problem}") from problem
    if not items:
        raise Trouble("its answer holds no vectors")
    return [one.embedding for one in sorted(items, key=lambda one: one.index)]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return sum(a * b for a, b in zip(one, other, strict=False)) / lengths if lengths else 0.0


PROBE = Probe(
    name="embeddings",
    sends="Three texts to `/v1/embeddings`, together and one alone.",
    expects="A vector of finite numbers for each, near ones for near texts, the same alone and among others.",
    means="A search finds the wrong documents, and nothing says so.",
    mend="serve a model for embeddings, with the pooling that it was made for",
    checks=(vectors, same_twice),
    deep=True,
)
