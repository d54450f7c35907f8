"""Puts what a way gave at the pace that the machine had when what stays up was measured. Pure.

The service that stays up is asked the same prompt after each of the way's, so that both had the same machine within a
second, hot or cool, alone or shared (docs/decisions/0048-a-way-is-tried-beside-what-runs.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stoker.records import Seen


def level(seen: Seen, before: Sequence[float], beside: Sequence[float]) -> Seen:
    """Returns a way's rates, repeat by repeat, as they were had the machine been as it was before.

    `before` are the rates of what stays up, measured alone, `beside` those between the way's; as many repeats count as all
    have. What its steps without drafts say of the machine is known better from that, and left out.
    """
    pairs = zip(seen.rates, before, beside, strict=False)
    return msgspec.structs.replace(seen, rates=tuple(rate * alone / now for rate, alone, now in pairs), base_step_s=None)
