"""What the paths of the door are for."""

from __future__ import annotations

from typing import NamedTuple

# OpenAI's, and what vLLM, SGLang and llama.cpp add; Anthropic's where the engine speaks it. The body names the model.
BY_MODEL = frozenset({
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank", "/v1/score",
    "/v1/messages", "/v1/messages/count_tokens", "/tokenize", "/detokenize", "/v1/audio/speech",
    "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/generations", "/v1/images/edits",
})  # fmt: skip
SERVICE, UPSTREAM, MODELS = "/service/", "/upstream/", "/v1/models"
KNOWN = BY_MODEL | {"/health", "/metrics", MODELS, "/running"}


class Within(NamedTuple):
    """A path of a service's own: the name in it, and what follows."""

    name: str
    path: str


def read_within(path: str, prefix: str) -> Within | None:
    """Returns whose path it is, such as `/service/NAME/path`; None where it has no name or nothing after it."""
    if not path.startswith(prefix):
        return None
    name, slash, rest = path.removeprefix(prefix).partition("/")
    return Within(name, f"/{rest}") if name and slash else None


def shown(path: str) -> str:
    """Returns a path as metrics show it: a few names, however many paths clients make up."""
    if path in KNOWN:
        return path
    prefixes = (SERVICE, UPSTREAM, f"{MODELS}/", "/api/")
    return next((prefix for prefix in prefixes if path.startswith(prefix)), "other")
