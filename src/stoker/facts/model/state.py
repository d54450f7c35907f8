"""Counts what a layer of linear attention, Mamba or convolution keeps of a request: as much for one token as for a million.

Source: the shapes in vLLM's and SGLang's calculators. A convolution keeps the last inputs in the model's 16 bits, the
recurrent state is 32 bits wide unless the config says otherwise: SGLang's default, and what hybrid models ask for.
"""

from __future__ import annotations

from stoker.facts.model.architecture import HEADS
from stoker.facts.model.documents import Document, table, text, whole

CONVOLUTION_BYTES = 2
STATE_TYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
MOST_BYTES = 2**44


def state_bytes(part: Document) -> int | None:
    """Returns the bytes of one such layer and request; None where the config does not say."""
    for count in (_delta_net, _kimi_delta, _mamba_2, _mamba_1, _short_convolution, _lightning):
        values = count(part)
        if values is not None:
            convolution, recurrent = values
            total = convolution * CONVOLUTION_BYTES + recurrent * _state_width(part)
            return total if total <= MOST_BYTES else None
    return None


def _state_width(part: Document) -> int:
    named = text(part, "mamba_ssm_dtype", "mamba_ssm_cache_dtype") or "float32"
    return STATE_TYPE_BYTES.get(named, 4)


def _delta_net(part: Document) -> tuple[int, int] | None:
    key_heads, value_heads = whole(part, "linear_num_key_heads"), whole(part, "linear_num_value_heads")
    key_width, value_width = whole(part, "linear_key_head_dim"), whole(part, "linear_value_head_dim")
    kernel = whole(part, "linear_conv_kernel_dim")
    if not (key_heads and value_heads and key_width and value_width and kernel):
        return None
    inputs = 2 * key_heads * key_width + value_heads * value_width
    return inputs * (kernel - 1), value_heads * value_width * key_width


def _kimi_delta(part: Document) -> tuple[int, int] | None:
    own = table(part, "linear_attn_config")
    heads, width, kernel = whole(own, "num_heads"), whole(own, "head_dim"), whole(own, "short_conv_kernel_size")
    if not (heads and width and kernel):
        return None
    return 3 * heads * width * (kernel - 1), heads * width * width


def _mamba_2(part: Document) -> tuple[int, int] | None:
    heads, width = whole(part, "mamba_num_heads", "mamba_n_heads"), whole(part, "mamba_head_dim", "mamba_d_head")
    state, kernel = whole(part, "ssm_state_size", "mamba_d_state"), whole(part, "conv_kernel", "mamba_d_conv")
    groups = whole(part, "n_groups", "mamba_n_groups") or 1
    if heads and not width:
        width = (_expanded(part) or 0) // heads
    if not (heads and width and state and kernel):
        return None
    return (heads * width + 2 * groups * state) * (kernel - 1), heads * width * state


def _mamba_1(part: Document) -> tuple[int, int] | None:
    inner, state, kernel = _expanded(part), whole(part, "mamba_d_state"), whole(part, "mamba_d_conv")
    if not (inner and state and kernel):
        return None
    return inner * (kernel - 1), inner * state


def _expanded(part: Document) -> int | None:
    hidden, factor = whole(part, "hidden_size"), whole(part, "mamba_expand", "expand")
    return hidden * factor if hidden and factor else None


def _short_convolution(part: Document) -> tuple[int, int] | None:
    width, kernel = whole(part, "conv_dim", "hidden_size"), whole(part, "conv_L_cache")
    return (width * (kernel - 1), 0) if width and kernel else None


def _lightning(part: Document) -> tuple[int, int] | None:
    heads, width = whole(part, *HEADS), whole(part, "head_dim")
    return (0, heads * width * width) if heads and width and part.get("attn_type_list") else None
