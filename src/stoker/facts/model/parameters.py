"""Counts a model's parameters from its tensors: packed weights as the weights they hold, scales not at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from math import prod
from typing import NamedTuple

from stoker.facts.model.safetensors import Tensor

# What quantisers store beside the weights, by the last word of the tensor's name: compressed-tensors, ModelOpt, GPTQ, AWQ,
# bitsandbytes, Mistral's own format and DeepSeek's, in this order.
SCALES = frozenset({
    "weight_scale", "weight_global_scale", "input_global_scale", "input_scale", "output_scale", "weight_zero_point",
    "input_zero_point", "weight_g_idx", "weight_shape",
    "weight_scale_2", "pre_quant_scale", "k_scale", "v_scale", "k_proj_scale", "v_proj_scale", "kv_scale",
    "scales", "qzeros", "g_idx", "zeros", "biases",
    "absmax", "quant_map", "nested_absmax", "nested_quant_map", "bitsandbytes__nf4", "bitsandbytes__fp4", "SCB",
    "qscale_weight", "qscale_act",
    "weight_scale_inv", "scale",
})  # fmt: skip
SCALE_ENDS = ("_scales", "_weight_scale", "_weight_scale_2", "_weight_scale_inv", "_scale_inv", "_input_scale")
ELEMENT_TYPES = frozenset({"F4", "F6_E2M3", "F6_E3M2", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0",
                           "BF16", "F16", "F32", "F64", "I8"})  # fmt: skip
PACKED_WORDS = frozenset({"I32", "U32"})
EXPERT = ".experts."  # `shared_experts`, which every token passes through, has no point before it
VISION = (
    "vision",
    "visual",
    "audio",
    "whisper",
    "image",
    "multi_modal",
    "multimodal",
    "mm_projector",
    "patch_merger",
    "vit.",
)


class Counts(NamedTuple):
    """Parameters in all, those of routed experts, and those that no token of text passes through; bytes by stored type."""

    parameters: int
    expert_parameters: int
    aside_parameters: int
    draft_tensors: int
    bytes_by_type: dict[str, int]


class Packing(NamedTuple):
    """How weights are packed: bits of each in a 32-bit word, and whether signed bytes hold two of four bits."""

    word_bits: int = 4
    bytes_hold_two: bool = False


def count_parameters(tensors: dict[str, Tensor], packing: Packing, draft_numbers: Collection[int] = ()) -> Counts:
    """Returns the counts; `draft_numbers` are layers past the model's own, which only draft."""
    counted, stored = Counter[str](), defaultdict[str, int](int)
    draft_tensors = 0
    roles: dict[str, str] = {}
    numbers = {str(number) for number in draft_numbers}
    for name, tensor in tensors.items():  # tens of thousands, in a tenth of a second
        begin, end = tensor.data_offsets
        stored[tensor.dtype] += end - begin
        suffix = name.rpartition(".")[2]
        if suffix in SCALES or suffix.endswith(SCALE_ENDS):
            continue
        head, _, tail = name.partition("layers.")
        role = roles.get(head) or roles.setdefault(head, _role(head))
        if role == "text":
            if numbers and tail.partition(".")[0] in numbers:
                role = "draft"
            elif EXPERT in name:
                role = "expert"
        draft_tensors += role == "draft"
        counted[role] += _weights(tensor, packing)
    return Counts(
        parameters=counted.total(),
        expert_parameters=counted["expert"],
        aside_parameters=counted["vision"] + counted["draft"],
        draft_tensors=draft_tensors,
        bytes_by_type=dict(stored),
    )


def _role(head: str) -> str:
    if "mtp" in head:
        return "draft"
    return "vision" if any(word in head for word in VISION) else "text"


def _weights(tensor: Tensor, packing: Packing) -> int:
    elements, dtype = prod(tensor.shape), tensor.dtype
    if dtype in ELEMENT_TYPES:
        return elements * 2 if dtype == "I8" and packing.bytes_hold_two else elements
    if dtype == "U8":  # two of four bits in a byte: NVFP4, MXFP4 and bitsandbytes alike
        return elements * 2
    # Words of 64 bits and masks are tables of numbers.
    return elements * 32 // packing.word_bits if dtype in PACKED_WORDS else 0


def active_parameters(counts: Counts, experts: int | None, experts_per_token: int | None) -> int | None:
    """Returns how many parameters a token of text passes through; None where the share of the experts is not known."""
    rest = counts.parameters - counts.expert_parameters - counts.aside_parameters
    if not counts.expert_parameters:
        return rest
    if not experts or not experts_per_token or experts_per_token > experts:
        return None
    return rest + counts.expert_parameters * experts_per_token // experts
