"""The Muon optimizer over stacked matrices, so that a deep narrow model needs few kernel launches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

MOMENTUM = 0.95
STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# Makes an update as large as AdamW's, so that both can share one learning rate.
ADAM_LIKE = 0.2
EPSILON = 1e-7


def orthogonalise(updates: Tensor) -> Tensor:
    """The nearest matrices with equal singular values, by Newton-Schulz iteration, for a stack of matrices."""
    a, b, c = COEFFICIENTS
    tall = updates.shape[-2] > updates.shape[-1]
    x = (updates.mT if tall else updates).bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + EPSILON)
    for _ in range(STEPS):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    out: Tensor = x.mT if tall else x
    return out


class StackedMuon:
    """Momentum with orthogonal updates for all two-dimensional weights of one model."""

    def __init__(self, weights: Iterable[nn.Parameter], weight_decay: float) -> None:
        groups: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for weight in weights:
            groups[weight.shape].append(weight)
        self.groups = list(groups.values())
        self.momenta = [torch.zeros(len(g), *g[0].shape, device=g[0].device) for g in self.groups]
        self.weight_decay = weight_decay
        self.orthogonalise = torch.compile(orthogonalise) if self.momenta[0].is_cuda else orthogonalise

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Moves every weight by its gradient."""
        for weights, momentum in zip(self.groups, self.momenta, strict=True):
            gradients = torch.stack([w.grad for w in weights if w.grad is not None])
            momentum.lerp_(gradients, 1 - MOMENTUM)
            scale = -rate * ADAM_LIKE * max(weights[0].shape) ** 0.5
            moves = self.orthogonalise(gradients.lerp(momentum, MOMENTUM)).float() * scale
            plain: list[Tensor] = list(weights)
            torch._foreach_mul_(plain, 1 - rate * self.weight_decay)
            torch._foreach_add_(plain, list(moves.unbind()))
