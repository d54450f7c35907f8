"""Turns a GGUF's metadata into what the model remembers, as llama.cpp lays it out."""

from __future__ import annotations

from stoker.facts.model.gguf import Header, Value
from stoker.records import CacheKind, CacheLayers

STATE_BYTES = 4  # llama.cpp keeps both halves of a recurrent state in 32 bits
MOST_LAYERS, MOST_VALUES = 4096, 2**44


class _Keys:
    def __init__(self, header: Header, architecture: str) -> None:
        self.pairs, self.prefix = header.pairs, f"{architecture}."

    def get(self, key: str) -> Value | None:
        return self.pairs.get(self.prefix + key)

    def whole(self, key: str) -> int | None:
        found = self.get(key)
        return found if isinstance(found, int) and 0 <= found <= 2**40 else None


def read_gguf_cache(header: Header, architecture: str) -> tuple[CacheLayers, ...]:
    """Returns the layers of each kind; empty where the header does not say."""
    keys = _Keys(header, architecture)
    heads = _kv_heads(keys)
    width = _widths(keys)
    if heads is None or width is None or sum(heads) * width > MOST_VALUES:
        return ()
    return tuple(one for one in (_latent(keys, heads) or _plain(keys, heads, width), *_state(keys, heads)) if one)


def _kv_heads(keys: _Keys) -> list[int] | None:
    """Returns the KV heads of each layer, none where a layer is recurrent; None where that is not said."""
    layers, heads = keys.whole("block_count"), keys.whole("attention.head_count")
    layers = None if layers is None else layers - (keys.whole("nextn_predict_layers") or 0)
    if layers is None or not 0 < layers <= MOST_LAYERS:
        return None
    stored = keys.get("attention.head_count_kv")
    if isinstance(stored, list):
        whole = [count for count in stored if isinstance(count, int) and 0 <= count <= MOST_LAYERS]
        return whole[:layers] if len(whole) == len(stored) >= layers else None
    each = heads if stored is None else keys.whole("attention.head_count_kv")
    if not each:
        return None
    if interval := keys.whole("full_attention_interval"):
        return [0 if (number + 1) % interval else each for number in range(layers)]
    is_recurrent = keys.whole("ssm.state_size")  # which layers are recurrent is not said then
    return None if is_recurrent else [each] * layers


def _widths(keys: _Keys) -> int | None:
    width, heads = keys.whole("embedding_length"), keys.whole("attention.head_count")
    each = width // heads if width and heads else None
    key, value = keys.whole("attention.key_length") or each, keys.whole("attention.value_length") or each
    return key + value if key and value else None


def _plain(keys: _Keys, heads: list[int], width: int) -> CacheLayers | None:
    # A window is not counted: which layers slide is in llama.cpp's code, not in the file. All of them is the upper bound.
    kind: CacheKind = "full"
    layers = sum(1 for count in heads if count)
    return CacheLayers(kind, layers, sum(heads) * width) if layers else None


def _latent(keys: _Keys, heads: list[int]) -> CacheLayers | None:
    latent, rotary = keys.whole("attention.kv_lora_rank"), keys.whole("rope.dimension_count")
    layers = sum(1 for count in heads if count)
    if not latent or rotary is None or not layers:
        return None
    return CacheLayers("mla", layers, layers * (latent + rotary))


def _state(keys: _Keys, heads: list[int]) -> tuple[CacheLayers, ...]:
    inner, state = keys.whole("ssm.inner_size"), keys.whole("ssm.state_size")
    kernel, groups = keys.whole("ssm.conv_kernel"), keys.whole("ssm.group_count") or 0
    layers = sum(1 for count in heads if not count)
    if not (inner and state and kernel and layers):
        return ()
    one = (inner + 2 * groups * state) * (kernel - 1) + inner * state
    return (CacheLayers("state", layers, state_bytes=layers * one * STATE_BYTES),) if one <= MOST_VALUES else ()
