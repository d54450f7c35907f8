"""What Stoker knows of a model on disk."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

ModelFormat = Literal["gguf", "safetensors"]
ModelLayout = Literal["gguf", "transformers", "mistral"]
CacheKind = Literal["full", "window", "mla", "state"]


class CacheLayers(Record, frozen=True):
    """The layers of a model that remember in the same way.

    `values_per_token` counts the numbers one token adds over all these layers (keys and values together, so that bytes
    are values times the width of the cache's type); `window_tokens` bounds how many tokens they keep. A `state` layer
    (linear attention, Mamba) keeps `state_bytes` a request, however long it is.
    """

    kind: CacheKind
    layers: int
    values_per_token: int = 0
    window_tokens: int | None = None
    state_bytes: int = 0


class MissingFile(Record, frozen=True):
    """A file without which the model does not load, or not everywhere, or cannot chat; and the repository that has it.

    `is_guess` says that the repository was made up from this one's name, and nothing else names it.
    """

    name: str
    take_from: str | None = None
    why: str = ""
    is_guess: bool = False


class Model(Record, frozen=True):
    """What a model's headers say of it; None where they do not say.

    `kv_bytes_per_token` is for a 16-bit cache, keys and values of all layers together. `digest` tells these files' content
    from others' (see `facts.model.read_digest`). `file_bytes` are the weights; `bytes_by_type` splits them by stored type.
    `active_parameters` are those that one token passes through. `repository` is the hub's name where the folder tells it.
    `layouts` are the ways to load it for which its files are complete. `cache_quantisation` is the KV cache's type that the
    checkpoint brings scales for. A draft head (EAGLE) is no model of its own: it shares its target's vocabulary and output.
    `heads` and `kv_heads` are those of attention, which a model spread over machines divides among them.
    `missing` and `problems` leave the facts as good as the rest of the files allows; each is a sentence for a person.
    """

    path: str
    name: str
    architecture: str
    file_bytes: int
    parameters: int | None
    quantisation: str | None
    context_tokens: int | None
    kv_bytes_per_token: int | None
    vocabulary_hash: str | None
    has_chat_template: bool
    licence: str | None
    digest: str = ""
    format: ModelFormat = "gguf"
    model_type: str | None = None
    repository: str | None = None
    active_parameters: int | None = None
    bytes_by_type: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    cache: tuple[CacheLayers, ...] = ()
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    vocabulary_size: int | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    draft_layers: int = 0
    has_vision: bool = False
    template_features: tuple[str, ...] = ()
    revision: str | None = None
    layouts: tuple[ModelLayout, ...] = ()
    cache_quantisation: str | None = None
    is_draft_head: bool = False
    missing: tuple[MissingFile, ...] = ()
    problems: tuple[str, ...] = ()
