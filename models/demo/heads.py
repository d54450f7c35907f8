"""EAGLE's two generations of draft heads for the demo model, in torch, under the names that SGLang and vLLM load.

A head reads what the target has computed for a token (`features`) and the token after it, and guesses the one after that.
Further guesses are made from its own output. Sources: `models/llama_eagle.py` and `llama_eagle3.py` of SGLang 0.5.16, and
the files of these names of vLLM 0.26.0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar, NamedTuple

import torch
from model import FeedForward, Llama, Norm, Packed, exact, linear, rotary_tables, rotate
from safetensors.torch import load_file, save_file
from shape import Shape, generation_config, hf_config
from torch import Tensor, nn
from torch.nn import functional

INIT_DEVIATION = 0.02


class Seen(NamedTuple):
    """What the target computed of a batch: what a head may read, and the logits that it should guess."""

    features: Tensor
    logits: Tensor


class Keys(NamedTuple):
    """Keys and values of one step of guessing."""

    k: Tensor
    v: Tensor


def captured_layers(shape: Shape) -> tuple[int, int, int]:
    """The layers before which both engines take EAGLE-3's features where a config names none."""
    return 2, shape.layers // 2, shape.layers - 3


@torch.no_grad()
def look(target: Llama, tokens: Tensor, packed: Packed, *, inner: bool) -> Seen:
    """Runs the target; the features are those within it (EAGLE-3) or its last, after the norm (EAGLE)."""
    x = functional.embedding(tokens, target.embed_tokens.weight)
    tables = rotary_tables(packed.positions, target.shape.head_dim)
    wanted, taken = captured_layers(target.shape), []
    for number, layer in enumerate(target.layers):
        if number in wanted:
            taken.append(x)
        x = layer(x, tables, packed)
    last = target.norm(x)
    return Seen(torch.cat(taken, -1) if inner else last, functional.linear(last, target.embed_tokens.weight))


class HeadAttention(nn.Module):
    """Attention over the true tokens so far and, for each further guess, the guesses before it."""

    def __init__(self, shape: Shape, width: int) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = linear(width, shape.heads * shape.head_dim)
        self.k_proj = linear(width, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(width, shape.kv_heads * shape.head_dim)
        self.o_proj = linear(shape.heads * shape.head_dim, shape.hidden)

    def project(self, x: Tensor, tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Keys]:
        """Queries, and keys and values, each `(windows, heads, tokens, head_dim)`."""
        group = self.shape.heads // self.shape.kv_heads
        q, k, v = (p(x).unflatten(-1, (-1, self.shape.head_dim)) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = (rotate(one, *tables).to(v.dtype) for one in (q, k))
        k, v = k.repeat_interleave(group, -2), v.repeat_interleave(group, -2)
        return q.transpose(1, 2), Keys(k.transpose(1, 2), v.transpose(1, 2))

    def forward(self, q: Tensor, steps: list[Keys], allowed: Tensor) -> Tensor:
        """The first step's keys hold the true tokens, seen as `allowed`; a later step's only that of the same place."""
        first, later = steps[0], steps[1:]
        scores = (q @ first.k.mT).masked_fill(~allowed, -torch.inf)
        own = [(q * step.k).sum(-1, keepdim=True) for step in later]
        shares = (torch.cat((scores, *own), -1) * self.shape.head_dim**-0.5).softmax(-1, torch.float32).to(q.dtype)
        out = shares[..., : scores.shape[-1]] @ first.v
        for place, step in enumerate(later, scores.shape[-1]):
            out = out + shares[..., place : place + 1] * step.v
        mixed: Tensor = self.o_proj(out.transpose(1, 2).flatten(-2))
        return mixed


class HeadLayer(nn.Module):
    """The one layer of a head of the first generation: a Llama layer without the norm before its attention."""

    def __init__(self, shape: Shape, width: int) -> None:
        super().__init__()
        self.self_attn = HeadAttention(shape, width)
        self.post_attention_layernorm = Norm(shape.hidden)
        self.mlp = FeedForward(shape)


class MidLayer(HeadLayer):
    """The one layer of a head of the third generation, which reads two things, each through a norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, 2 * shape.hidden)
        self.input_layernorm = Norm(shape.hidden)
        self.hidden_norm = Norm(shape.hidden)


class Head(nn.Module):
    """What both generations share."""

    config: ClassVar[dict[str, object]]
    inner: bool

    def __init__(self, shape: Shape, inputs: int) -> None:
        super().__init__()
        self.shape = shape
        self.fc = linear(inputs * shape.hidden, shape.hidden)

    def reset(self) -> None:
        """Draws fresh weights."""
        for weight in self.parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=INIT_DEVIATION)

    @property
    def layer(self) -> HeadLayer:
        """The layer, under whatever name its generation keeps it."""
        raise NotImplementedError

    def enter(self, features: Tensor) -> Tensor:
        """What the target's features become before the first guess."""
        raise NotImplementedError

    def mix(self, embedded: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """What attention reads, and what its result is added to."""
        raise NotImplementedError

    def leave(self, x: Tensor) -> Tensor:
        """What the target's output matrix reads."""
        raise NotImplementedError

    def guess(
        self, embedded: Tensor, hidden: Tensor, positions: Tensor, steps: list[Keys], allowed: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One step: what the output matrix reads, and what the next step does; adds its keys to `steps`."""
        read, x = self.mix(embedded, hidden)
        cos, sin = (one.unflatten(0, positions.shape) for one in rotary_tables(positions.flatten(), self.shape.head_dim))
        q, keys = self.layer.self_attn.project(read, (cos, sin))
        steps.append(keys)
        x = x + self.layer.self_attn(q, steps, allowed)
        x = x + self.layer.mlp(self.layer.post_attention_layernorm(x))
        return self.leave(x), x


class Eagle(Head):
    """The first generation: reads the target's last hidden state, and guesses the next one."""

    # vLLM writes "Eagle" before each name and takes the one that it knows, SGLang takes the first that it knows. SGLang
    # 0.5.16 replaces a head's output matrix by the target's, and fails where the two are tied to the embeddings.
    config: ClassVar = {"architectures": ["LlamaForCausalLMEagle", "LlamaForCausalLM"], "tie_word_embeddings": False}
    inner = False

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, 2)
        self.layers = nn.ModuleList([HeadLayer(shape, shape.hidden)])
        self.reset()

    @property
    def layer(self) -> HeadLayer:
        found = self.layers[0]
        assert isinstance(found, HeadLayer)
        return found

    def enter(self, features: Tensor) -> Tensor:
        return features

    def mix(self, embedded: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        x = self.fc(torch.cat((embedded, hidden), -1))
        return x, x

    def leave(self, x: Tensor) -> Tensor:
        return x


class Eagle3(Head):
    """The third generation: reads three hidden states from within the target, and is trained on its own output."""

    config: ClassVar = {"architectures": ["LlamaForCausalLMEagle3"]}
    inner = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, 3)
        self.midlayer = MidLayer(shape)
        self.norm = Norm(shape.hidden)
        self.reset()

    @property
    def layer(self) -> HeadLayer:
        return self.midlayer

    def enter(self, features: Tensor) -> Tensor:
        out: Tensor = self.fc(features)
        return out

    def mix(self, embedded: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat((self.midlayer.input_layernorm(embedded), self.midlayer.hidden_norm(hidden)), -1), hidden

    def leave(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x)
        return out


HEADS: dict[str, type[Eagle] | type[Eagle3]] = {"eagle": Eagle, "eagle3": Eagle3}


def save_head(head: Head, folder: Path) -> None:
    """Writes its two configurations and model.safetensors; embeddings and output matrix are the target's, and in neither."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: exact(value) for name, value in head.state_dict().items()}
    if isinstance(head, Eagle):  # SGLang's has a bias, which it would draw at random; vLLM has none and passes over it
        weights["fc.bias"] = torch.zeros(head.shape.hidden, dtype=torch.bfloat16)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    config = {**hf_config(head.shape), **head.config, "num_hidden_layers": 1, "draft_vocab_size": head.shape.vocabulary}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    # SGLang asks for one, and where there is none its log says that it failed to load it, and to look for it at a hub.
    (folder / "generation_config.json").write_text(json.dumps(generation_config(), indent=2) + "\n")


def load_head(role: str, folder: Path, shape: Shape) -> Head:
    """The head whose weights `save_head` wrote."""
    head = HEADS[role](shape)
    weights = load_file(str(folder / "model.safetensors"))
    head.load_state_dict({name: value.float() for name, value in weights.items() if name != "fc.bias"})
    return head
