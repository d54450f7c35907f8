"""What would run well on a machine: models that lie there, and those that others measured on such a one."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record
from stoker.records.speed import Prediction

# now: it may be started; waits: once memory is free; blocked: something is to be done first; elsewhere: it must be fetched.
Reach = Literal["now", "waits", "blocked", "elsewhere"]


class Suggestion(Record, frozen=True):
    """One model and what to expect of it. `target` is what `stoker up` takes for it; None is unknown.

    `speed` is predicted for one request at a time without drafts, `limit_tok_s` what the memory's bandwidth allows.
    `because` says both and more in words; `obstacle` is what stands in the way, and what to do.
    """

    service: str
    target: str
    reach: Reach
    engine: str
    quantisation: str
    parameters: int | None
    need_bytes: int | None
    speed: Prediction | None
    limit_tok_s: float | None
    because: tuple[str, ...]
    obstacle: str = ""


class SuggestionsView(Record, frozen=True):
    """Suggestions, the best first, by the rule that `order` tells; `found` counts the models that lie here."""

    suggestions: tuple[Suggestion, ...]
    found: int
    order: str
