"""What the headers of known routers say of who answered."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stoker.probes.kit.wire import Reply

# LiteLLM 1.106 counts the fallbacks that it took; Cloudflare's gateway numbers, as it documents, the step that answered.
# Others count attempts, which may be of the same model, or name no model at all.
FALLBACKS = ("x-litellm-attempted-fallbacks", "cf-aig-step")
PLACES = ("x-litellm-model-api-base", "x-litellm-model-group")
SOME = re.compile(r"0*[1-9][0-9]*")


def fell_back(reply: Reply) -> bool:
    """Tells whether a router says that another model answered than the first one."""
    return any(SOME.fullmatch(reply.headers.get(name, "")) for name in FALLBACKS)


def who_answered(replies: Iterable[Reply]) -> str:
    """Returns where fallen-back answers came from, in words; empty where no header tells of a fallback."""
    fallen = [reply for reply in replies if fell_back(reply)]
    places = sorted({reply.headers[name] for reply in fallen for name in PLACES if name in reply.headers})
    return f"{len(fallen)} fallback(s), answered by {', '.join(places) or 'nobody names'}" if fallen else ""
