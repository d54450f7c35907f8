"""Says Mistral's params.json in the words of config.json, so that all else has one kind of config to read."""

from __future__ import annotations

from stoker.facts.model.documents import Document, items, table, whole

# Source: the mapping in vLLM's reader of this format, and mistral-inference's own arguments.
NAMES = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size", "tied_embeddings": "tie_word_embeddings",
    "quantization": "quantization_config", "vision_encoder": "vision_config",
}  # fmt: skip
MOE_NAMES = {
    "num_experts": "n_routed_experts", "num_shared_experts": "n_shared_experts",
    "expert_hidden_dim": "moe_intermediate_size",
}  # fmt: skip


def to_config(params: Document) -> Document:
    """Returns the config; keys that both formats share stay as they are."""
    config = {NAMES.get(key, key): value for key, value in params.items() if value is not None}
    moe = {MOE_NAMES.get(key, key): value for key, value in table(params, "moe").items()}
    config |= {key: value for key, value in moe.items() if value is not None}
    if vision := table(table(params, "multimodal"), "vision_encoder_args"):
        config["vision_config"] = vision
    if yarn := table(params, "yarn"):
        config["rope_scaling"] = {"rope_type": "yarn", **yarn}
    if windows := items(params, "sliding_window"):
        config |= _windows(windows, whole(params, "n_layers") or 0)
    config.setdefault("max_position_embeddings", params.get("max_seq_len"))
    config["architectures"] = [_architecture(config)]
    return config


def _windows(windows: list[object], layers: int) -> Document:
    """One entry a layer, repeated over all of them; none means that the layer sees everything."""
    sizes = [size for size in windows if isinstance(size, int)]
    kinds = ["full_attention" if size is None else "sliding_attention" for size in windows]
    repeated = kinds * (min(layers, 2**16) // len(kinds))
    return {"sliding_window": max(sizes, default=None), "layer_types": repeated}


def _architecture(config: Document) -> str:
    # The format names none; these are the classes that vLLM takes for it.
    if config.get("vision_config"):
        return "PixtralForConditionalGeneration"
    if not whole(config, "n_routed_experts"):
        return "MistralForCausalLM"
    return "MistralLarge3ForCausalLM" if whole(config, "n_shared_experts") else "MixtralForCausalLM"
