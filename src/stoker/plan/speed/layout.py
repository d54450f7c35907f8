"""How many bytes a weight takes, by part of the model: from what people call a quantisation, and the files' size. Pure."""

from __future__ import annotations

import re
from typing import Literal

from stoker.plan.speed.shape import PARTS, Part, Shape
from stoker.records import Record

Family = Literal["16-bit", "fp8", "fp4", "int4", "gguf"]
SIXTEEN, EIGHT = 2.0, 1.0
NVFP4_BYTES, MXFP4_BYTES = 0.5625, 0.53125  # four bits, and an 8-bit scale for every 16 or 32 weights
# The first that is found in the name counts; bytes are those of the whole block, scales among them.
NAMED: tuple[tuple[str, Family, float], ...] = (
    (r"nv-?fp4|w4a4", "fp4", NVFP4_BYTES),
    (r"mxfp4|\bfp4\b", "fp4", MXFP4_BYTES),
    (r"\bi?q8|int8|w8a8|w8a16", "gguf", 1.0625),
    (r"\bi?q6", "gguf", 0.82),
    (r"\bi?q5", "gguf", 0.69),
    (r"q4_0", "gguf", 0.5625),
    (r"\biq4", "gguf", 0.54),
    (r"\bq4", "gguf", 0.6),
    (r"\bi?q3", "gguf", 0.45),
    (r"\bi?q2", "gguf", 0.3),
    (r"\bi?q1", "gguf", 0.22),
    (r"fp8|f8|mxfp8|\be4m3", "fp8", 1.0),
    (r"awq|gptq|int4|w4a16|nf4|bnb|4-?bit|exl[23]|autoround", "int4", 0.55),
    (r"bf16|fp16|f16|16-?bit|none|half", "16-bit", 2.0),
    (r"fp32|f32", "16-bit", 4.0),
)
BITS = re.compile(r"(\d+(?:\.\d+)?)\s*bpw")
GGUF_HEAD_BYTES, GGUF_MXFP4_REST = 0.82, 1.0625
LLAMACPP = "llamacpp"
LEAST_BYTES = 0.2


class Layout(Record, frozen=True):
    """Bytes a weight of each part, the family of kernels that multiply it, and the cache's bytes a number."""

    family: Family
    mlp: float
    mixer: float
    head: float
    routed: float
    kv: float = SIXTEEN
    weight_only: bool = False
    is_guess: bool = False

    def bytes_of(self, part: Part) -> float:
        """Returns the bytes of one weight of a part."""
        return float(getattr(self, part))


def read_quantisation(name: str) -> tuple[Family, float] | None:
    """Returns the family and the bytes a weight of a quantisation by its name; None where nothing in it is known."""
    said = name.lower()
    if (bits := BITS.search(said)) is not None:
        return "int4", float(bits[1]) / 8
    return next(((family, size) for pattern, family, size in NAMED if re.search(pattern, said)), None)


def plan_layout(shape: Shape, quantisation: str, engine: str, weights_gb: float | None, words: str = "") -> Layout:
    """Returns the layout of a checkpoint; `words` is what else is known of it, such as the kernels that multiply it."""
    said = quantisation.lower()
    plain = re.sub(r"\([^)]*kv[^)]*\)", "", said)
    known = read_quantisation(plain)
    if shape.stored is not None and known is not None and known[0] == "16-bit":
        known = read_quantisation(shape.stored)
    family, size = known or (("gguf", 0.6) if engine in (LLAMACPP, "ollama") else ("fp8", EIGHT))
    sizes = _sizes(shape, family, size, engine, said, words)
    if weights_gb:
        sizes = _as_large_as(shape, sizes, weights_gb * 1e9, family)
    return Layout(
        family=family, **sizes, kv=EIGHT if re.search(r"(kv|cache)\W{0,3}fp8|fp8\W{0,3}kv", f"{said} {words}") else SIXTEEN,
        weight_only="marlin" in f"{said} {words}" or "w4a16" in f"{said} {words}", is_guess=known is None or shape.is_guess,
    )  # fmt: skip


def _sizes(shape: Shape, family: Family, size: float, engine: str, said: str, words: str) -> dict[Part, float]:
    if family == "16-bit":
        return dict.fromkeys(PARTS, size)
    if engine in (LLAMACPP, "ollama") or family == "gguf":
        rest = GGUF_MXFP4_REST if family == "fp4" else size
        return {"mlp": rest, "mixer": rest, "routed": size, "head": max(rest, GGUF_HEAD_BYTES)}
    if family != "fp4":
        return {"mlp": size, "mixer": size, "routed": size, "head": SIXTEEN}
    if size == MXFP4_BYTES and shape.routed:  # gpt-oss: only the experts, unless an image packs the rest as well
        rest = size if "mxfp4" in words else SIXTEEN
        return {"mlp": rest, "mixer": rest, "routed": size, "head": rest}
    kept = dict.fromkeys(shape.fp4_keeps, EIGHT if "fp8" in said else shape.fp4_keeps_bytes)
    return {"mlp": size, "mixer": size, "routed": size, "head": _head(said), **kept}


def _head(said: str) -> float:
    found = re.search(r"head (nvfp4|fp8|bf16)", said)
    if found is None or "stored wide" in said:
        return SIXTEEN
    return {"nvfp4": NVFP4_BYTES, "fp8": EIGHT, "bf16": SIXTEEN}[found[1]]


def _as_large_as(shape: Shape, sizes: dict[Part, float], file_bytes: float, family: Family) -> dict[Part, float]:
    """Fits what is not the experts or the feed-forward layers to the size of the files, where that can be."""
    if family == "gguf":
        mean = file_bytes / (shape.total_b * 1e9)
        return {part: size * mean / sizes["routed" if shape.routed else "mlp"] for part, size in sizes.items()}
    packed: tuple[Part, ...] = ("routed", "mlp") if shape.routed or family != "fp4" else ("mlp",)
    rest_bytes = file_bytes - sum(shape.parameters(part) * sizes[part] for part in packed)
    rest_bytes -= (shape.head + shape.embed) * 1e6 * SIXTEEN
    mixer_bytes = rest_bytes / shape.parameters("mixer") if shape.mixer else sizes["mixer"]
    if not min(sizes.values()) * 0.8 < mixer_bytes < SIXTEEN * 1.5:
        return _smaller(shape, sizes, file_bytes)
    return {**sizes, "mixer": min(SIXTEEN, max(min(sizes.values()), mixer_bytes))}


def _smaller(shape: Shape, sizes: dict[Part, float], file_bytes: float) -> dict[Part, float]:
    """Packs the experts closer, as releases do that call themselves by the type of the rest."""
    others = sum(shape.parameters(part) * sizes[part] for part in PARTS if part != "routed") + shape.embed * 1e6 * SIXTEEN
    routed_bytes = (file_bytes - others) / shape.parameters("routed") if shape.routed else 0.0
    return {**sizes, "routed": routed_bytes} if LEAST_BYTES < routed_bytes < sizes["routed"] else sizes
