"""Says in rows what is known of a model: for a terminal, a page or an agent."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.records import MIB, CacheLayers, Model, say_bytes

UNKNOWN = "unknown"
BILLION = 10**9
KINDS = {"full": "keep everything", "mla": "keep one latent a token", "window": "keep a window", "state": "keep a state"}


def describe_model(model: Model) -> list[tuple[str, str]]:
    """Returns (name, value) rows; what the files do not say is called unknown, what does not apply is left out. Pure."""
    return [*_identity(model), *_size(model), *_memory(model), *_speech(model), *_faults(model)]


def _identity(model: Model) -> Iterator[tuple[str, str]]:
    yield "model", model.name
    yield "path", model.path
    if model.repository:
        yield "repository", model.repository + (f" at {model.revision}" if model.revision else "")
    yield "architecture", model.architecture + (", a draft head and no model of its own" if model.is_draft_head else "")
    yield "format", f"{model.format}; complete for: {', '.join(model.layouts) or 'no loader'}"
    yield "licence", model.licence or UNKNOWN
    yield "digest", model.digest or UNKNOWN


def _size(model: Model) -> Iterator[tuple[str, str]]:
    yield "parameters", _parameters(model)
    stored = ", ".join(f"{name} {_say(count)}" for name, count in _largest(model.bytes_by_type))
    yield "weights", say_bytes(model.file_bytes) + (f": {stored}" if stored else "")
    yield "quantisation", model.quantisation or UNKNOWN
    if model.experts:
        yield "experts", f"{model.experts}, {model.experts_per_token or UNKNOWN} a token"
    if model.draft_layers:
        yield "draft layers", f"{model.draft_layers} of its own (MTP)"


def _parameters(model: Model) -> str:
    if model.parameters is None:
        return UNKNOWN
    total, active = model.parameters, model.active_parameters
    used = f", {active / BILLION:.2f} billion a token" if active is not None and active != total else ""
    return f"{total / BILLION:.2f} billion{used}"


def _largest(stored: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(stored.items(), key=lambda one: -one[1])[:4]


def _memory(model: Model) -> Iterator[tuple[str, str]]:
    yield "context", f"{model.context_tokens:,} tokens" if model.context_tokens else UNKNOWN
    each = model.kv_bytes_per_token
    yield "KV cache", UNKNOWN if each is None else f"{each:,} bytes a token in 16 bits"
    for layers in model.cache:
        yield "cache layers", _cache(layers)
    if model.cache_quantisation:
        yield "cache type", f"{model.cache_quantisation}, as the checkpoint asks"


def _cache(layers: CacheLayers) -> str:
    said = f"{layers.layers} {KINDS[layers.kind]}"
    if layers.window_tokens:
        said += f" of {layers.window_tokens:,} tokens"
    return said + (f" of {_say(layers.state_bytes)} a request" if layers.state_bytes else "")


def _say(count: int) -> str:
    return say_bytes(count) if count >= MIB else f"{count:,} bytes"


def _speech(model: Model) -> Iterator[tuple[str, str]]:
    yield "chat template", ", ".join(model.template_features) or ("plain" if model.has_chat_template else "none")
    yield "vocabulary", f"{model.vocabulary_size:,} tokens" if model.vocabulary_size else UNKNOWN
    if model.has_vision:
        yield "vision", "it sees images"


def _faults(model: Model) -> Iterator[tuple[str, str]]:
    for file in model.missing:
        source = f"; take it from {file.take_from}" if file.take_from else ""
        yield "missing", f"{file.name}: {file.why}{source}{' (a guess from the name)' if file.is_guess else ''}"
    for problem in model.problems:
        yield "problem", problem
