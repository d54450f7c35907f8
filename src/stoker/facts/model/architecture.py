"""Takes a model's shape out of its config: the part that speaks, its layers, experts, context and draft layers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from stoker.facts.model.documents import Document, items, table, text, whole

DEFAULTS = Path(__file__).with_name("config_defaults.json")
TEXT_PARTS = ("text_config", "llm_config", "language_config")
VISION_PARTS = ("vision_config", "vision_tower_config", "visual")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
HEADS = ("num_attention_heads", "n_head")
KV_HEADS = ("num_key_value_heads", "num_kv_heads")
DRAFT_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
# EAGLE's heads: `Eagle3...`, `...ForCausalLMEagle`; DFlash's say that they draft.
DRAFT_MARKS = ("eagle", "draftmodel")
MOST_STRETCH = 4096.0


class Shape(NamedTuple):
    """What a config says of the model that speaks; None where it does not say."""

    architecture: str
    model_type: str | None
    context_tokens: int | None
    layers: int | None
    hidden_size: int | None
    heads: int | None
    kv_heads: int | None
    vocabulary_size: int | None
    experts: int | None
    experts_per_token: int | None
    draft_layers: int
    has_vision: bool
    is_draft_head: bool


def text_part(config: Document) -> Document:
    """Returns the config of the language model, where a model with eyes nests it, with what its class assumes in silence."""
    part = {**config, **table(config, *TEXT_PARTS)}
    assumed: Document = _assumptions().get(text(part, "model_type") or "", {})
    return {**assumed, **{key: value for key, value in part.items() if value is not None}}


@cache
def _assumptions() -> Document:
    # Some releases leave out what Transformers' config class has as a default; the file lists those that matter here.
    found: Document = json.loads(DEFAULTS.read_text())
    return found


def read_shape(config: Document) -> Shape:
    """Returns the shape. Pure: the config was read before."""
    part = text_part(config)
    architecture = next((name for name in items(config, "architectures") if isinstance(name, str)), None)
    marks = f"{architecture} {config.get('model_type')}".lower()
    return Shape(
        architecture=architecture or text(config, "model_type") or "unknown",
        model_type=text(config, "model_type"),
        context_tokens=_context(part),
        layers=whole(part, *LAYERS),
        hidden_size=whole(part, "hidden_size", "n_embd", "d_model"),
        heads=whole(part, *HEADS),
        kv_heads=whole(part, *KV_HEADS) or whole(part, *HEADS),
        vocabulary_size=whole(part, "vocab_size"),
        experts=whole(part, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"),
        experts_per_token=whole(part, "num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_topk", "moe_top_k"),
        draft_layers=whole(part, *DRAFT_LAYERS) or 0,
        has_vision=any(table(config, name) for name in VISION_PARTS),
        is_draft_head=any(mark in marks for mark in DRAFT_MARKS),
    )


def _context(part: Document) -> int | None:
    stated = whole(part, "max_position_embeddings", "max_seq_len", "n_positions", "max_sequence_length", "seq_length")
    rope = table(part, "rope_scaling", "rope_parameters")
    original, factor = whole(rope, "original_max_position_embeddings"), rope.get("factor")
    stretched = None
    # Only YaRN's factor is about length beyond what is stated; others are already in it, or bend frequencies alone.
    if "yarn" in (rope.get("rope_type"), rope.get("type")) and original and isinstance(factor, int | float):
        stretched = int(original * min(MOST_STRETCH, max(1.0, factor)))  # in this order, so that NaN is 1
    return max(filter(None, (stated, stretched)), default=None)
