"""The sizes of the two models, and their Hugging Face description."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizer import CONTEXT, CONTROL, VOCABULARY

NORM_EPSILON = 1e-5
ROPE_THETA = 10_000.0


@dataclass(frozen=True)
class Shape:
    """What fixes the size of one Llama model; embeddings are tied and a head has 64 dimensions."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int = VOCABULARY
    context: int = CONTEXT
    head_dim: int = 64

    @property
    def parameters(self) -> int:
        """How many numbers the model holds."""
        attention = self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        layer = attention + 3 * self.hidden * self.feed_forward + 2 * self.hidden
        return self.vocabulary * self.hidden + self.layers * layer + self.hidden


SHAPES = {
    "target": Shape(hidden=256, layers=10, heads=4, kv_heads=2, feed_forward=640),
    "draft": Shape(hidden=128, layers=2, heads=2, kv_heads=1, feed_forward=320),
}


def hf_config(shape: Shape) -> dict[str, object]:
    """The `config.json` of a model of this shape."""
    end_of_text, _, turn_end = range(len(CONTROL))
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_THETA,
        "rope_parameters": {"rope_type": "default", "rope_theta": ROPE_THETA},
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "vocab_size": shape.vocabulary,
        "bos_token_id": None,
        "eos_token_id": turn_end,
        "pad_token_id": end_of_text,
        "torch_dtype": "bfloat16",
    }


def generation_config() -> dict[str, object]:
    """Greedy decoding that stops at the end of a turn or of a text."""
    end_of_text, _, turn_end = range(len(CONTROL))
    return {"do_sample": False, "eos_token_id": [turn_end, end_of_text], "pad_token_id": end_of_text}
