"""Turns a config into what the model remembers: which layers keep keys and values, a window of them, or a state.

Every value is counted as the engines lay it out: keys and values of the KV heads, MLA's one latent with its rotary part, the
indexer's key of sparse attention. What a config describes in words that are not known here is unknown as a whole.
"""

from __future__ import annotations

from collections import Counter

from stoker.facts.model.architecture import HEADS, LAYERS, text_part
from stoker.facts.model.documents import Document, items, table, whole
from stoker.facts.model.state import state_bytes
from stoker.records import CacheKind, CacheLayers

CACHE_VALUE_BYTES = 2  # keys and values of 16 bits, what every engine takes unless told otherwise
MOST_LAYERS = 4096
MOST_VALUES = 2**44
KINDS: dict[object, CacheKind | None] = {
    "full_attention": "full", "attention": "full", "global_attention": "full", "global": "full", "*": "full",
    "sliding_attention": "window", "sliding_window": "window", "local_attention": "window", "chunked_attention": "window",
    "linear_attention": "state", "mamba": "state", "mamba2": "state", "conv": "state", "recurrent": "state", "M": "state",
    "mlp": None, "moe": None, "-": None, "E": None,
}  # fmt: skip
# Layers that differ among themselves in ways that the counts below do not know.
STRANGE = ("compress_ratios", "block_configs", "attention_other_setting")


def read_cache(config: Document) -> tuple[CacheLayers, ...]:
    """Returns the layers of each kind; empty where the config does not say, or says it in words that are not known."""
    part = text_part(config)
    kinds = None if any(part.get(name) for name in STRANGE) else _layer_kinds(part)
    if not kinds or len(kinds) > MOST_LAYERS:
        return ()
    # Layers at the end that look into the memory of earlier ones keep none of their own.
    own = kinds[: len(kinds) - (whole(part, "num_kv_shared_layers") or 0)] or kinds
    counts = Counter(kind for kind in own if kind is not None)
    found = [_layers(part, kind, counts[kind]) for kind in counts]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else ()


def kv_bytes_per_token(cache: tuple[CacheLayers, ...]) -> int | None:
    """Returns what one token adds for good; None where the cache is unknown."""
    if not cache:
        return None
    return CACHE_VALUE_BYTES * sum(layers.values_per_token for layers in cache if layers.kind in ("full", "mla"))


def _layer_kinds(part: Document) -> list[CacheKind | None] | None:
    layers = whole(part, *LAYERS) or 0
    if not 0 < layers <= MOST_LAYERS:
        return None
    words = _layer_words(part, layers)
    if words is None or any(not isinstance(word, str) or word not in KINDS for word in words):
        return None
    return [KINDS[word] for word in words[:layers]] if len(words) >= layers else None


def _layer_words(part: Document, layers: int) -> list[object] | None:
    """Returns a word for each layer, from whichever of the ways to say it this config uses."""
    if isinstance(pattern := part.get("hybrid_override_pattern"), str):
        return list(pattern)
    if named := items(part, "layer_types", "layers_block_type"):
        return named
    if flags := items(part, "attn_type_list"):  # 1 remembers everything, 0 is linear
        return ["attention" if flag == 1 else "linear_attention" for flag in flags]
    if flags := items(part, "hybrid_layer_pattern"):  # here 1 slides
        return ["sliding_attention" if flag == 1 else "attention" for flag in flags]
    if full := items(table(part, "linear_attn_config"), "full_attn_layers"):  # counted from 1
        numbers = {number for number in full if isinstance(number, int)}
        return ["attention" if number in numbers else "linear_attention" for number in range(1, layers + 1)]
    if interval := whole(part, "full_attention_interval"):
        return _every(interval, layers, "linear_attention")
    if any(name.startswith("mamba_") for name in part):
        return None  # which layers are which is in the model's code
    return _sliding_words(part, layers)


def _sliding_words(part: Document, layers: int) -> list[object]:
    if (chunks := items(part, "no_rope_layers")) and whole(part, "attention_chunk_size"):
        return ["chunked_attention" if flag else "attention" for flag in chunks]
    window, context = whole(part, "sliding_window"), whole(part, "max_position_embeddings")
    if not window or part.get("use_sliding_window") is False or (context and window >= context):
        return ["attention"] * layers
    if pattern := whole(part, "sliding_window_pattern", "_sliding_window_pattern"):
        return _every(pattern, layers, "sliding_attention")
    first = whole(part, "max_window_layers") if part.get("use_sliding_window") else 0
    return ["sliding_attention" if number >= (first or 0) else "attention" for number in range(layers)]


def _every(interval: int, layers: int, otherwise: str) -> list[object]:
    return [otherwise if (number + 1) % interval else "attention" for number in range(layers)]


def _layers(part: Document, kind: CacheKind, layers: int) -> CacheLayers | None:
    if kind == "state":
        one_bytes = state_bytes(part)
        return None if one_bytes is None else CacheLayers("state", layers, state_bytes=layers * one_bytes)
    latent, rotary = whole(part, "kv_lora_rank"), whole(part, "qk_rope_head_dim")
    if latent and rotary is not None and kind == "full":
        return _checked("mla", layers, latent + rotary + _indexer_values(part))
    values = _head_values(part, kind)
    window = whole(part, "sliding_window", "sliding_window_size", "attention_chunk_size") if kind == "window" else None
    return None if values is None else _checked(kind, layers, values, window)


def _checked(kind: CacheKind, layers: int, values: int, window_tokens: int | None = None) -> CacheLayers | None:
    if layers * values > MOST_VALUES:
        return None
    return CacheLayers(kind, layers, layers * values, window_tokens)


def _indexer_values(part: Document) -> int:
    # Sparse attention keeps one key of its indexer beside the latent, in its own narrower type: counted as if it were not.
    return (whole(part, "index_head_dim") or 0) if whole(part, "index_topk") else 0


def _head_values(part: Document, kind: CacheKind) -> int | None:
    """Returns keys and values of one layer; sliding and global layers may have heads of their own."""
    own = {"full": ("num_global_key_value_heads",), "window": ("swa_num_key_value_heads",)}[kind]
    own_width = {"full": ("global_head_dim",), "window": ("swa_head_dim",)}[kind]
    own_values = {"full": (), "window": ("swa_v_head_dim",)}[kind]
    heads = whole(part, *HEADS)
    kv_heads = 1 if part.get("multi_query") is True else whole(part, *own, "num_key_value_heads", "num_kv_heads")
    width = whole(part, *own_width, "head_dim", "attention_head_dim")
    hidden = whole(part, "hidden_size", "n_embd", "d_model")
    if not width and hidden and heads:
        width = hidden // heads
    kv_heads = heads if kv_heads is None else kv_heads
    if not width or not kv_heads:
        return None
    return kv_heads * (width + (whole(part, *own_values, "v_head_dim") or width))
