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
MOST_WORDS = 4  # of a model's name
SHOWN_PREFIXES = (SERVICE, UPSTREAM, f"{MODELS}/", "/api/")
KNOWN = BY_MODEL | {"/health", "/metrics", MODELS, "/running"}


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


def shown(path: str) -> str:
    """Returns a path as metrics show it: a few names, however many paths clients make up."""
    if path in KNOWN:
        return path
    return next((prefix for prefix in SHOWN_PREFIXES if path.startswith(prefix)), "other")
