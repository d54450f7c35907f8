"""Reads the model in a GGUF, whole or split, and refuses one that cannot be loaded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stoker.errors import Refused
from stoker.facts.model.attention import kv_bytes_per_token
from stoker.facts.model.gguf import Header, read_header
from stoker.facts.model.gguf_cache import read_gguf_cache
from stoker.facts.model.hub import name_of
from stoker.facts.model.parts import are_one_model, find_parts
from stoker.facts.model.template import template_features
from stoker.records import Model

PROJECTOR = "mmproj"  # the eyes of a model that sees, in a file of their own
DRAFT = "draft"
FAR_SMALLER = 4  # by parameters: two quantisations of one model have as many
EXPERTS = "_exps"


def read_gguf(file: Path) -> Model:
    """Returns the model of which this file is one, or a part; raises Refused with what is wrong."""
    parts = find_parts(file)
    headers = [read_header(part) for part in parts]
    for part, header in zip(parts, headers, strict=True):
        _check_whole(part, header)
    return _describe(parts, headers)


def find_gguf(folder: Path) -> Path | None:
    """Returns the GGUF that a folder holds, its draft aside, or None; raises Refused where there are several."""
    found = _models_in(folder)
    draft = find_gguf_draft(folder)
    rest = [file for file in found if file != draft]
    if len(rest) == 1 or are_one_model(rest):
        return rest[0]
    if found:
        names = ", ".join(file.name for file in found[:6])
        raise Refused(f"{folder} holds {len(found)} GGUF files", why=names, next_step="name the one to serve")
    return None


def find_gguf_draft(folder: Path) -> Path | None:
    """Returns the GGUF of a folder that drafts for the other one there: by its name, or by its size and vocabulary."""
    found = _models_in(folder)
    named = [file for file in found if DRAFT in file.name.lower()]
    rest = [file for file in found if file not in named]
    if len(named) == 1 and (len(rest) == 1 or are_one_model(rest)):
        return named[0]
    if named or len(found) != 2:
        return None
    try:
        large, small = sorted(map(read_gguf, found), key=lambda model: -(model.parameters or 0))
    except Refused:  # what is damaged is told of once it is to be served
        return None
    is_far_smaller = (small.parameters or 0) * FAR_SMALLER <= (large.parameters or 0)
    is_kin = small.vocabulary_hash is not None and small.vocabulary_hash == large.vocabulary_hash
    return Path(small.path) if is_far_smaller and is_kin else None


def _models_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.gguf") if not file.name.startswith(PROJECTOR))


def _check_whole(file: Path, header: Header) -> None:
    if not header.tensors and "split.count" in header.pairs:
        return  # the first part of a split model may hold its metadata alone
    if not header.tensors or not header.pairs.keys() & {"general.architecture", "split.no"}:
        raise Refused(f"{file} holds no model", why="its header names no architecture or no tensors")
    ends = [tensor.offset_bytes + (tensor.stored_bytes or 0) for tensor in header.tensors]
    need_bytes, have_bytes = header.data_offset_bytes + max(ends), file.stat().st_size
    if have_bytes < need_bytes:
        raise Refused(
            f"{file} is cut short",
            why=f"its tensors end at byte {need_bytes:,}, the file at byte {have_bytes:,}",
            next_step="fetch it again",
        )


def _describe(parts: list[Path], headers: list[Header]) -> Model:
    header = headers[0]  # a split model's metadata is in its first part
    architecture = str(header.pairs.get("general.architecture", "unknown"))
    elements, stored = _by_type(headers)
    cache = read_gguf_cache(header, architecture)
    template = _text(header, "tokenizer.chat_template")
    experts, used = _whole(header, f"{architecture}.expert_count"), _whole(header, f"{architecture}.expert_used_count")
    repository, revision = name_of(parts[0])
    return Model(
        path=str(parts[0].absolute()),  # not resolved: a hub's cache links to blobs that have lost their names
        name=str(header.pairs.get("general.name") or parts[0].stem),
        architecture=architecture,
        file_bytes=sum(part.stat().st_size for part in parts),
        parameters=elements.total() or None,
        quantisation=max(elements, key=lambda name: elements[name]) if elements else None,
        context_tokens=_whole(header, f"{architecture}.context_length") or None,
        kv_bytes_per_token=kv_bytes_per_token(cache),
        vocabulary_hash=_text(header, "tokenizer.ggml.tokens"),
        has_chat_template=template is not None,
        licence=_text(header, "general.license"),
        model_type=architecture,
        repository=repository,
        active_parameters=_active(headers, elements.total(), experts, used),
        bytes_by_type=dict(stored),
        cache=cache,
        layers=_whole(header, f"{architecture}.block_count"),
        hidden_size=_whole(header, f"{architecture}.embedding_length"),
        vocabulary_size=_vocabulary_size(header, architecture),
        experts=experts or None,
        experts_per_token=used or None,
        draft_layers=_whole(header, f"{architecture}.nextn_predict_layers") or 0,
        has_vision=any(parts[0].parent.glob(f"{PROJECTOR}*.gguf")),
        template_features=template_features(template),
        revision=revision,
        layouts=("gguf",),
    )


def _by_type(headers: list[Header]) -> tuple[Counter[str], Counter[str]]:
    elements, stored = Counter[str](), Counter[str]()
    for header in headers:
        for tensor in header.tensors:
            elements[tensor.type_name] += tensor.elements
            stored[tensor.type_name] += tensor.stored_bytes or 0
    return elements, stored


def _active(headers: list[Header], total: int, experts: int | None, used: int | None) -> int | None:
    of_experts = sum(tensor.elements for header in headers for tensor in header.tensors if EXPERTS in tensor.name)
    if not of_experts:
        return total or None
    return total - of_experts + of_experts * used // experts if experts and used and used <= experts else None


def _vocabulary_size(header: Header, architecture: str) -> int | None:
    tokens = header.pairs.get("tokenizer.ggml.tokens")
    if isinstance(tokens, list):
        return len(tokens)
    counted = str(tokens or "").rpartition(":")[2]  # a long list is given as 'sha256:...:COUNT'
    return int(counted) if counted.isdecimal() else _whole(header, f"{architecture}.vocab_size")


def _text(header: Header, key: str) -> str | None:
    found = header.pairs.get(key)
    return str(found) if found is not None else None


def _whole(header: Header, key: str) -> int | None:
    found = header.pairs.get(key)
    return found if isinstance(found, int) and 0 <= found < 2**63 else None
