"""A compact Llama in torch whose weights carry the names that Hugging Face's LlamaForCausalLM expects."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from shape import NORM_EPSILON, ROPE_THETA, Shape, generation_config, hf_config
from torch import Tensor, nn
from torch.nn import functional

INIT_DEVIATION = 0.02
# The smallest step of float16; a bfloat16 weight rounded to it is exact in both types, so both agree on it.
F16_STEP = 2.0**-24


@dataclass(frozen=True)
class Packed:
    """Documents laid end to end: where each begins and each token's position in its own document."""

    starts: Tensor
    positions: Tensor
    longest: int


class Norm(nn.Module):
    """Root-mean-square norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, (x.shape[-1],), self.weight, NORM_EPSILON)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A projection without bias."""
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `(tokens, heads, head_dim)` in the half-split layout of Hugging Face."""
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


def rotary_tables(positions: Tensor, head_dim: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every token's position."""
    powers = torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim
    angles = positions[:, None].float() * ROPE_THETA**-powers
    return angles.cos()[:, None], angles.sin()[:, None]


def attend(q: Tensor, k: Tensor, v: Tensor, packed: Packed) -> Tensor:
    """Causal attention that stays inside each document."""
    if q.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        starts, longest = packed.starts, packed.longest
        out = varlen_attn(q, k, v, starts, starts, longest, longest, window_size=(-1, 0))
        assert isinstance(out, Tensor)
        return out
    lengths = [*packed.starts.diff().tolist(), q.shape[0] - int(packed.starts[-1])]
    documents = zip(*(torch.split(t.transpose(0, 1), lengths, dim=1) for t in (q, k, v)), strict=True)
    parts = [functional.scaled_dot_product_attention(a, b, c, is_causal=True) for a, b, c in documents if a.shape[1]]
    return torch.cat(parts, dim=1).transpose(0, 1)


class Attention(nn.Module):
    """Grouped-query attention over packed documents."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = linear(shape.hidden, shape.heads * shape.head_dim)
        self.k_proj = linear(shape.hidden, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(shape.hidden, shape.kv_heads * shape.head_dim)
        self.o_proj = linear(shape.heads * shape.head_dim, shape.hidden)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], packed: Packed) -> Tensor:
        group = self.shape.heads // self.shape.kv_heads
        q, k, v = (p(x).unflatten(-1, (-1, self.shape.head_dim)) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotate(q, *tables).to(v.dtype), rotate(k, *tables).to(v.dtype)
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        out: Tensor = self.o_proj(attend(q, k, v, packed).flatten(1))
        return out


class FeedForward(nn.Module):
    """Gated feed-forward layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = linear(shape.hidden, shape.feed_forward)
        self.up_proj = linear(shape.hidden, shape.feed_forward)
        self.down_proj = linear(shape.feed_forward, shape.hidden)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape.hidden)
        self.mlp = FeedForward(shape)

    def forward(self, x: Tensor, tables: tuple[Tensor, Tensor], packed: Packed) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), tables, packed)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Llama(nn.Module):
    """The model: token numbers in, logits out, embeddings tied."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden)
        self.reset()

    def reset(self) -> None:
        """Draws fresh weights; the projections that write to the residual stream start smaller in deep models."""
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                writes = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = (2 * self.shape.layers) ** -0.5 if writes else 1.0
                nn.init.normal_(weight, std=INIT_DEVIATION * scale)

    def forward(self, tokens: Tensor, packed: Packed) -> Tensor:
        x = functional.embedding(tokens, self.embed_tokens.weight)
        tables = rotary_tables(packed.positions, self.shape.head_dim)
        for layer in self.layers:
            x = layer(x, tables, packed)
        return functional.linear(self.norm(x), self.embed_tokens.weight)


def exact(weight: Tensor) -> Tensor:
    """The weight in bfloat16, moved where needed to a value that float16 holds exactly."""
    rounded = (weight.detach().float() / F16_STEP).round() * F16_STEP
    return rounded.to(torch.bfloat16).contiguous().cpu()


def save_hf(model: Llama, folder: Path) -> None:
    """Writes config.json, generation_config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {f"model.{name}": exact(value) for name, value in model.state_dict().items()}
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(hf_config(model.shape), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(generation_config(), indent=2) + "\n")


def load_hf(folder: Path, shape: Shape) -> Llama:
    """The model whose weights `save_hf` wrote."""
    model = Llama(shape)
    weights = load_file(str(folder / "model.safetensors"))
    model.load_state_dict({name.removeprefix("model."): value.float() for name, value in weights.items()})
    return model
