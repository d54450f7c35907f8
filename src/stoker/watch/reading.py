"""Makes a sample of what an engine's page told under the names that are the same for all engines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from stoker.records import Plan
from stoker.watch.samples import EngineSample

PREFIX = "stoker_engine_"
OFF, UNSAID = "off", "on"
METHOD_FLAGS = ("speculation_type", "--speculative-algorithm", "--speculative-config.method")
DRAFT_FLAGS = ("draft_model", "--speculative-draft-model-path", "--speculative-config")
LOOKUPS = ("ngram", "suffix", "lookup")


class Asked(NamedTuple):
    """What the gateway and the daemon know of a service at a look: launches so far, requests with it, how they ended."""

    at_s: float
    launch: int
    requests: int
    work: object
    ended: int = 0
    failed: int = 0


def method_of(plan: Plan) -> str:
    """Returns how a plan speculates, in one word: each method has a band of its own."""
    said = {setting.name: str(setting.value).lower() for setting in plan.settings}
    method = next((said[flag] for flag in METHOD_FLAGS if flag in said), None)
    if method is None:
        return UNSAID if any(flag in said for flag in DRAFT_FLAGS) else OFF
    return "ngram" if any(word in method for word in LOOKUPS) else method


def make_sample(values: Mapping[str, float], stall_s: float | None, asked: Asked, lost: str, odd: str = "") -> EngineSample:
    """Returns the sample of a look; without values it says why there are none.

    SGLang counts verify steps and generated tokens, and says how many tokens it verifies in a step: of those one is the
    model's own, and so is the first token of each request. Drafts follow from that.
    """
    count = _counting(values)
    generated, steps = count("generated_tokens"), count("verify_steps")
    drafted, accepted = count("draft_tokens"), count("accepted_tokens")
    verified = count("tokens_verified_per_step")
    if drafted is None and verified is not None and verified > 1 and steps is not None and generated is not None:
        drafted = steps * (verified - 1)
        accepted = min(drafted, max(0, generated - steps - (count("requests") or 0)))
    return EngineSample(
        asked.at_s, asked.launch, asked.requests, count("requests_running"), count("requests_waiting"), generated,
        count("prompt_tokens"), drafted, accepted, steps, asked.work, stall_s, None, asked.ended, asked.failed, lost, odd,
    )  # fmt: skip


def _counting(values: Mapping[str, float]) -> Callable[[str], int | None]:
    def count(name: str) -> int | None:
        value = values.get(PREFIX + name)
        return None if value is None else int(value)

    return count


Buckets = tuple[tuple[float, float], ...]


def high_quantile(before: Buckets, now: Buckets, share: float = 0.99) -> float | None:
    """Returns the bound below which that share of what was counted between two looks lies; None where nothing was."""
    if not now or [bound for bound, _ in before] != [bound for bound, _ in now]:
        return None
    grew = [after - was for (_, was), (_, after) in zip(before, now, strict=True)]
    if grew[-1] <= 0 or min(grew) < 0:
        return None
    finite = [(bound, below) for (bound, _), below in zip(now, grew, strict=True) if bound != float("inf")]
    return next((bound for bound, below in finite if below >= share * grew[-1]), finite[-1][0] if finite else None)
