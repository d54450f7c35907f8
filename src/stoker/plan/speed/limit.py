"""What the memory's bandwidth allows: a step cannot end before its bytes have been read once. Pure."""

from __future__ import annotations

from stoker.plan.speed.rows import Asked
from stoker.plan.speed.shape import PARTS, Part
from stoker.plan.speed.work import GIGA, Served, Step, cached_bytes, read_bytes, strangers
from stoker.records import Record

GB10_BYTES_PER_S = 273e9  # nominal: 256 bits at 8533 MT/s


class StepBytes(Record, frozen=True):
    """The bytes that one decoding step reads, by what they are."""

    routed: float
    mlp: float
    mixer: float
    head: float
    cache: float
    state: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.routed + self.mlp + self.mixer + self.head + self.cache + self.state


def step_bytes(served: Served, requests: float, tokens: float, depth: float) -> StepBytes:
    """Returns what a step of so many requests reads, each with so many tokens at this depth."""
    together = strangers(Step(requests, tokens))
    parts: dict[Part, float] = {part: read_bytes(served, part, together) for part in PARTS}
    state = requests * 2 * served.shape.state_mb / 1e3 * GIGA
    return StepBytes(**parts, cache=requests * cached_bytes(served, depth), state=state)


def limit_tok_s(asked: Asked, bandwidth: float = GB10_BYTES_PER_S) -> float:
    """Returns the tokens a second that reading alone allows, with all requests decoding and drafts for nothing."""
    burst = asked.burst
    requests = min(burst.requests, burst.most_at_once)
    read = step_bytes(asked.served, requests, burst.verified, burst.prompt + burst.depth).total
    return requests * burst.gained * bandwidth * asked.served.boxes * asked.replicas / read
