"""What of a model matters for its speed: parameters by part, and what its layers remember."""

from __future__ import annotations

from typing import Literal

from stoker.records import Record

Part = Literal["mlp", "mixer", "head", "routed"]
PARTS: tuple[Part, ...] = ("mlp", "mixer", "head", "routed")
MILLION = 1e6


class Shape(Record, frozen=True):
    """A model's parameters (millions) by part, and its memory of a request; see `data/models.toml`.

    `is_guess`: only the number of parameters is known, or not even that, and the rest is as usual for such a size.
    """

    names: tuple[str, ...]
    layers: int
    head: float
    mlp: float = 0
    mixer: float = 0
    embed: float = 0
    routed: float = 0
    experts: int = 0
    experts_per_token: float = 0
    kv: int = 0
    window_kv: int = 0
    window: int = 0
    state_mb: float = 0
    width: int = 0
    window_width: int = 0
    piece: int | None = None
    draft: float | None = None
    stored: str | None = None
    fp4_keeps: tuple[Part, ...] = ()
    fp4_keeps_bytes: float = 2.0
    is_guess: bool = False

    def parameters(self, part: Part) -> float:
        """Returns how many parameters a part has."""
        return float(getattr(self, part)) * MILLION

    @property
    def total_b(self) -> float:
        """All parameters, in billions."""
        return (self.mlp + self.mixer + self.head + self.embed + self.routed) / 1e3

    @property
    def active_b(self) -> float:
        """The parameters that one token passes through, in billions."""
        return (self.mlp + self.mixer + self.head + self.routed * self.routed_share(1)) / 1e3

    def routed_share(self, tokens: float) -> float:
        """Returns which share of all experts so many tokens want together, if each chose for itself."""
        if not self.experts:
            return 0.0
        return float(1.0 - (1.0 - self.experts_per_token / self.experts) ** tokens)


LAYERS_AT_8B, LAYERS_POWER = 34, 0.3
USUAL_VOCABULARY, USUAL_EXPERTS, USUAL_KV_HEADS, USUAL_HEAD_SIZE = 150_000, 128, 8, 128
SHARED_SHARE_OF_ACTIVE, MIXER_SHARE, MIXTURE_BELOW = 0.45, 0.25, 0.6


def usual_shape(name: str, total_b: float, active_b: float | None) -> Shape:
    """Returns the shape that a model of this size usually has."""
    active_b = active_b if active_b and active_b < MIXTURE_BELOW * total_b else None
    seen_b = total_b if active_b is None else (total_b * active_b) ** 0.5
    layers = max(8, round(LAYERS_AT_8B * (seen_b / 8) ** LAYERS_POWER))
    hidden = (seen_b * 1e9 / (12 * layers)) ** 0.5
    head = min(USUAL_VOCABULARY * hidden / MILLION, 250 * (active_b or total_b))
    width = int(layers * hidden)
    common = {"names": (name,), "layers": layers, "head": head, "width": width, "is_guess": True}
    if active_b is None:
        rest = max(0.0, total_b * 1e3 - 2 * head)
        kv = 2 * USUAL_KV_HEADS * USUAL_HEAD_SIZE * layers
        return Shape(**common, mlp=rest * (1 - MIXER_SHARE), mixer=rest * MIXER_SHARE, embed=head, kv=kv)
    mixer = SHARED_SHARE_OF_ACTIVE * active_b * 1e3
    chosen = max(1.0, active_b * 1e3 - mixer - head)
    routed = max(chosen, total_b * 1e3 - mixer - 2 * head)
    kv = USUAL_KV_HEADS * USUAL_HEAD_SIZE * layers
    per_token = USUAL_EXPERTS * chosen / routed
    return Shape(**common, mixer=mixer, embed=head, routed=routed, experts=USUAL_EXPERTS, experts_per_token=per_token, kv=kv)
