"""Names how a model's weights are stored, in one word: nvfp4, fp8, mxfp4, awq, gptq, w4a16, w8a8, nf4, bf16 ..."""

from __future__ import annotations

from collections import Counter

from stoker.facts.model.documents import Document, table, text, whole
from stoker.facts.model.parameters import Packing
from stoker.facts.model.safetensors import Tensor

PLAIN = {"BF16": "bf16", "F16": "f16", "F32": "f32", "F8_E4M3": "fp8", "F8_E5M2": "fp8", "I8": "int8", "F4": "fp4"}
KNOWN = ("nvfp4", "mxfp4", "mxfp8", "fp8", "awq", "gptq", "nf4", "fp4")
CONFIG_KEYS = ("quantization_config", "compression_config", "quantization")
BLOCK_OF_MXFP4 = 32  # NVFP4's are 16


def quantisation_table(config: Document, beside: Document) -> Document:
    """Returns what says how the weights are packed: the config's own table, or ModelOpt's file beside it."""
    text_config = table(config, "text_config")
    found = table(config, *CONFIG_KEYS) or table(text_config, *CONFIG_KEYS)
    return {**found, **table(found, "quantization"), **table(beside, "quantization")}


def name_quantisation(settings: Document, tensors: dict[str, Tensor]) -> str | None:
    """Returns the word; from the settings where there are any, else from what is stored."""
    return _from_settings(settings) or _from_tensors(tensors)


def name_cache_quantisation(settings: Document) -> str | None:
    """Returns the type that the checkpoint wants its KV cache in, which engines follow without being asked."""
    if algorithm := text(settings, "kv_cache_quant_algo"):
        return algorithm.lower()
    scheme = table(settings, "kv_cache_scheme")
    bits = whole(scheme, "num_bits")
    return ("fp" if scheme.get("type") == "float" else "int") + str(bits) if bits else None


def read_packing(settings: Document, config: Document) -> Packing:
    """Returns how many weights a stored word holds."""
    groups = [table(group, "weights") for group in table(settings, "config_groups").values() if isinstance(group, dict)]
    stated = [whole(settings, "bits", "w_bit")] + [whole(group, "num_bits") for group in groups]
    bits = [count for count in stated if count is not None and 2 <= count <= 8]
    return Packing(word_bits=min(bits, default=4), bytes_hold_two=config.get("expert_dtype") == "fp4")


def _from_settings(settings: Document) -> str | None:
    method = (text(settings, "quant_method") or "").lower().replace("_", "-")
    if settings.get("qformat_weight"):  # Mistral's own
        method = str(settings["qformat_weight"]).lower()
    algorithm = (text(settings, "quant_algo") or "").lower()
    if algorithm == "mixed_precision":
        return _most_packed(settings)
    if method == "compressed-tensors" or (not method and settings.get("config_groups")):
        return _from_groups(settings)
    if method.startswith("bitsandbytes"):
        return (text(settings, "bnb_4bit_quant_type") or "fp4") if settings.get("load_in_4bit") else "int8"
    words = f"{algorithm} {method} {text(settings, 'packing_format') or ''}"
    if known := next((word for word in KNOWN if word in words), None):
        return known
    bits = whole(settings, "bits")
    return f"w{bits}a16" if bits else algorithm or method or None


def _most_packed(settings: Document) -> str:
    layers = [layer for layer in table(settings, "quantized_layers").values() if isinstance(layer, dict)]
    words = " ".join((text(layer, "quant_algo") or "").lower() for layer in layers)
    return next((word for word in KNOWN if word in words), "mixed")


def _from_groups(settings: Document) -> str | None:
    """Returns the word of the group with the fewest bits: with experts in four, a few layers in eight weigh little."""
    groups = [group for group in table(settings, "config_groups").values() if isinstance(group, dict)]
    named = [(whole(table(group, "weights"), "num_bits") or 99, _group(group)) for group in groups]
    packed = text(settings, "format") or ""
    return min(named)[1] if named else next((word for word in KNOWN if word in packed), None)


def _group(group: Document) -> str:
    weights, inputs = table(group, "weights"), table(group, "input_activations")
    bits, input_bits = whole(weights, "num_bits"), whole(inputs, "num_bits") or 16
    if weights.get("type") != "float":
        return f"w{bits}a{input_bits}"
    if bits != 4:
        return f"fp{bits}"
    return "mxfp4" if whole(weights, "group_size") == BLOCK_OF_MXFP4 else "nvfp4"


def _from_tensors(tensors: dict[str, Tensor]) -> str | None:
    stored = Counter[str]()
    endings: set[str] = set()
    for name, tensor in tensors.items():
        stored[tensor.dtype] += tensor.data_offsets[1] - tensor.data_offsets[0]
        endings.add(name.rpartition(".")[2])
    if endings & {"weight_global_scale", "weight_scale_2"} and "U8" in stored:
        return "nvfp4"
    if any(ending.endswith("_blocks") for ending in endings):
        return "mxfp4"
    if "qweight" in endings:
        return "gptq" if "g_idx" in endings else "awq"
    if any("bitsandbytes__" in ending for ending in endings):
        return "nf4" if "bitsandbytes__nf4" in endings else "fp4"
    most = stored.most_common(1)
    return PLAIN.get(most[0][0]) if most else None
