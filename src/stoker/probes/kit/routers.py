"""What the headers of known routers say of who answered."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.probes.kit.wire import Reply

# LiteLLM 1.106 counts the fallbacks it took and names where the answer came from.
FALLBACKS = ("x-litellm-attempted-fallbacks",)
ANSWERED = ("x-litellm-model-api-base", "x-litellm-model-group", "x-stoker-service", "x-stoker-model")


def fallbacks(reply: Reply) -> int:
    """Returns how many fallbacks a router says that it took; 0 where it says none."""
    said = [reply.headers.get(name, "0") for name in FALLBACKS]
    return sum(int(one) for one in said if one.isascii() and one.isdigit())


def who_answered(replies: Iterable[Reply]) -> str:
    """Returns where fallen-back answers came from, in words; empty where no header tells of a fallback."""
    fallen = [reply for reply in replies if fallbacks(reply)]
    places = sorted({reply.headers[name] for reply in fallen for name in ANSWERED[:2] if name in reply.headers})
    return f"{len(fallen)} fallback(s), answered by {', '.join(places) or 'nobody names'}" if fallen else ""
