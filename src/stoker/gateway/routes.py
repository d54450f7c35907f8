"""What the paths of the door are for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

# OpenAI's, and what vLLM, SGLang and llama.cpp add; Anthropic's where the engine speaks it. The body names the model.
BY_MODEL = frozenset({
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank", "/v1/score",
    "/v1/messages", "/v1/messages/count_tokens", "/tokenize", "/detokenize", "/v1/audio/speech",
    "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/generations", "/v1/images/edits",
})  # fmt: skip
SERVICE, UPSTREAM, MODELS = "/service/", "/upstream/", "/v1/models"
REALTIME = "/v1/realtime"  # a WebSocket; the query names the model
# Engines have paths that change what they are: weights, adapters, saved slots, caches. Those are for the owner's key.
FOR_ALL_KEYS = BY_MODEL | {"/health", MODELS, REALTIME}
MOST_WORDS = 4  # of a model's name
SHOWN_PREFIXES = (SERVICE, UPSTREAM, f"{MODELS}/", "/api/")
KNOWN = BY_MODEL | {"/health", "/metrics", MODELS, "/running", REALTIME, "/mcp"}
BASE, CONTROL = "/v1", "/api/"
LONGEST_FIRST = sorted((*BY_MODEL, MODELS), key=len, reverse=True)


class Within(NamedTuple):
    """A target of a service's own: the name in it, and what follows, as it was written and as a path."""

    name: str
    target: bytes

    @property
    def path(self) -> str:
        """What follows the name, without the query."""
        return unquote(self.target.partition(b"?")[0].decode("latin-1"))


def read_within(target: bytes, prefix: str) -> Iterator[Within]:
    """Yields whose target it may be, such as `/service/NAME/path?query`, the shortest name first.

    A model's name may have slashes in it, written as they are or as %2F.
    """
    written, mark, query = target.partition(b"?")
    if not written.startswith(prefix.encode()):
        return
    words = written[len(prefix) :].split(b"/")
    for count in range(1, min(len(words), MOST_WORDS + 1)):
        name = unquote(b"/".join(words[:count]).decode("latin-1"))
        if name:
            yield Within(name, b"/" + b"/".join(words[count:]) + mark + query)


def meant(path: str) -> str | None:
    """Returns the path that a client meant whose base URL lacks `/v1`, or has it twice; None for one that is like none."""
    if path.startswith(CONTROL):
        return None
    return next((known for known in LONGEST_FIRST if path.rstrip("/").endswith(known.removeprefix(BASE))), None)


def why_unknown(path: str) -> str:
    """Says that there is no such path, and what a client's base URL should be where that is the likely reason."""
    known = meant(path)
    if known is None:
        return f"There is no {path} here."
    if path.count(BASE) > known.count(BASE):
        cause = f": the client adds {BASE} itself, so its base URL has to end before it"
    elif path.count(BASE) < known.count(BASE):
        cause = f": the client's base URL has to end in {BASE}"
    else:
        cause = ""
    return f"There is no {path} here, but {known} is{cause}."


def shown(path: str) -> str:
    """Returns a path as metrics show it: a few names, however many paths clients make up."""
    if path in KNOWN:
        return path
    return next((prefix for prefix in SHOWN_PREFIXES if path.startswith(prefix)), "other")
