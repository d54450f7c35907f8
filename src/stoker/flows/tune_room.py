"""Refuses to look for more memory where it could change nothing: starts that tell of luck alone."""

from __future__ import annotations

from stoker.errors import Refused
from stoker.flows.tunable import Tunable
from stoker.flows.tune_asking import Asking

# The plan's tokens are a prediction, and an engine keeps some of its cache for what comes next.
AMPLE = 2.0


def check_cache_is_short(tunable: Tunable, asking: Asking) -> None:
    """Raises Refused where the cache holds all that would be asked at once: a larger share is only more cache."""
    holds_tokens = tunable.plan.kv_tokens
    requests = min(max(asking.concurrency), tunable.requests)
    each_tokens = asking.prompt_tokens + asking.new_tokens
    if asking.knob != "memory_share" or holds_tokens is None or holds_tokens < AMPLE * requests * each_tokens:
        return
    raise Refused(
        f"a larger `memory_share` would not make {tunable.wish.name} faster for this load",
        why=f"its cache holds {holds_tokens:,} tokens by the plan, and {requests} requests of {each_tokens:,} tokens ask "
        f"for {requests * each_tokens:,} at once",
        next_step="say the load that is too slow, by --concurrency, --pp and --tg, and `parallel` in its table",
    )
