"""In which ways boxes with one GPU each may share a model, and what is against each. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stoker.plan.speed.ways import Way
from stoker.records import Model


def ways_of(boxes: int) -> list[Way]:
    """Returns one box, copies, and all ways to use every box for one model, the widest sharing of layers first."""
    shared = [Way(tensor=tensor, pipeline=boxes // tensor) for tensor in range(boxes, 0, -1) if boxes % tensor == 0]
    return [Way(), Way(copies=boxes), *shared] if boxes > 1 else [Way()]


def why_not(way: Way, model: Model) -> str:
    """Returns why a model cannot be divided so, or nothing; what its files do not tell is left to the engine."""
    return "; ".join(_against(way, model))


def _against(way: Way, model: Model) -> Iterator[str]:
    tensor = way.tensor
    if model.heads is not None and model.heads % tensor:
        yield f"its {model.heads} attention heads do not divide by {tensor}"
    if model.kv_heads is not None and model.kv_heads % tensor and tensor % model.kv_heads:
        yield f"its {model.kv_heads} heads of keys and values do not divide by {tensor}, nor {tensor} by them"
    if model.layers is not None and model.layers < way.pipeline:
        yield f"it has {model.layers} layers, fewer than {way.pipeline} boxes"


def share_of(way: Way, model: Model) -> Model:
    """Returns the part of a model that the fullest box holds, as a model of its own: weights, and cache a token.

    Engines keep the embedding with the first layers and the output matrix with the last. Keys and values go by heads, so
    more boxes than heads keep copies; MLA's latent has no heads, and every box keeps all of it.
    """
    if way.tensor * way.pipeline == 1:
        return model
    edge_bytes = min(2 * (model.vocabulary_size or 0) * (model.hidden_size or 0), model.file_bytes // 4)
    layers = -(-model.layers // way.pipeline) / model.layers if model.layers else 1 / way.pipeline
    inner_bytes = model.file_bytes - (2 * edge_bytes if way.pipeline > 1 else 0)
    held = inner_bytes * layers + (edge_bytes if way.pipeline > 1 else 0)
    heads = min(way.tensor, model.kv_heads or way.tensor)
    cache = tuple(
        msgspec.structs.replace(
            one,
            values_per_token=round(one.values_per_token * layers / (1 if one.kind == "mla" else heads)),
            state_bytes=round(one.state_bytes * layers / way.tensor),
        )
        for one in model.cache
    )
    known = model.kv_bytes_per_token
    return msgspec.structs.replace(
        model, file_bytes=round(held / way.tensor), cache=cache,
        kv_bytes_per_token=None if known is None else round(known * layers / heads),
    )  # fmt: skip
