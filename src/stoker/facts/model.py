"""Reads what a model on disk is, and refuses one that cannot be loaded."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from stoker.errors import Refused
from stoker.facts.gguf import Header, read_header
from stoker.facts.parts import are_one_model, find_parts
from stoker.records import Model

SAMPLES, SAMPLE_BYTES = 16, 64 * 1024
KV_VALUE_BYTES = 2  # an f16 cache, llama.cpp's default


def read_model(path: Path) -> Model:
    """Returns the model in a GGUF file, or in a folder that holds one; raises Refused with what is wrong."""
    try:
        parts = find_parts(_find_gguf(path))
        headers = [read_header(part) for part in parts]
        for part, header in zip(parts, headers, strict=True):
            _check_whole(part, header)
        _check_name(parts[0].absolute())
        return _describe(parts, headers)
    except OSError as problem:
        raise Refused(f"{path} cannot be read", why=str(problem)) from problem


def _find_gguf(path: Path) -> Path:
    if not path.exists():
        close = sorted(path.parent.glob("*.gguf"))[:3] if path.parent.is_dir() else []
        hint = f"there is: {', '.join(file.name for file in close)}" if close else "check the path"
        raise Refused(f"there is no model at {path}", why="the path does not exist", next_step=hint)
    if path.is_file():
        return path
    if not path.is_dir():
        raise Refused(f"{path} is neither a file nor a folder", next_step="name a GGUF file, or a folder that holds one")
    found = sorted(path.glob("*.gguf"))
    if len(found) == 1 or are_one_model(found):
        return found[0]
    if found:
        names = ", ".join(file.name for file in found[:6])
        raise Refused(f"{path} holds {len(found)} GGUF files", why=names, next_step="name the one to serve")
    why = "it is empty" if not any(path.iterdir()) else "none of its files ends in .gguf"
    raise Refused(f"there is no model in {path}", why=why, next_step="name a GGUF file, or a folder that holds one")


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


def _check_name(file: Path) -> None:
    try:
        str(file).encode()
    except UnicodeEncodeError as problem:  # it has to go into the store and to the engine
        raise Refused(f"the path {str(file)!a} cannot be used", why="it is not UTF-8", next_step="rename it") from problem


def _describe(parts: list[Path], headers: list[Header]) -> Model:
    header = headers[0]  # a split model's metadata is in its first part
    architecture = str(header.pairs["general.architecture"])
    elements = _elements_by_type(headers)
    return Model(
        path=str(parts[0].absolute()),  # not resolved: a hub's cache links to blobs that have lost their names
        name=str(header.pairs.get("general.name") or parts[0].stem),
        architecture=architecture,
        file_bytes=sum(part.stat().st_size for part in parts),
        parameters=elements.total(),
        quantisation=elements.most_common(1)[0][0],
        context_tokens=_whole(header, f"{architecture}.context_length") or None,
        kv_bytes_per_token=_kv_bytes_per_token(header, architecture),
        vocabulary_hash=_text(header, "tokenizer.ggml.tokens"),
        has_chat_template="tokenizer.chat_template" in header.pairs,
        licence=_text(header, "general.license"),
        digest=read_digest(parts[0]),
    )


def read_digest(file: Path) -> str:
    """Returns 12 hex digits that change with the file's content: its size, both ends and samples in between are hashed.

    The whole of a 70 GB model would take minutes to read; a replaced or re-quantised one differs in every sample.
    """
    digest = hashlib.sha256()
    for part in find_parts(file):
        size_bytes = part.stat().st_size
        digest.update(str(size_bytes).encode())
        with part.open("rb") as content:
            for sample in range(SAMPLES + 1):
                content.seek(max(0, size_bytes - SAMPLE_BYTES) * sample // SAMPLES)
                digest.update(content.read(SAMPLE_BYTES))
    return digest.hexdigest()[:12]


def _elements_by_type(headers: list[Header]) -> Counter[str]:
    elements: Counter[str] = Counter()
    for header in headers:
        for tensor in header.tensors:
            elements[tensor.type_name] += tensor.elements
    return elements


def _text(header: Header, key: str) -> str | None:
    found = header.pairs.get(key)
    return str(found) if found is not None else None


def _whole(header: Header, key: str) -> int | None:
    found = header.pairs.get(key)
    return found if isinstance(found, int) and found >= 0 else None


def _kv_bytes_per_token(header: Header, architecture: str) -> int | None:
    """Counts keys and values of every layer; None where a head count differs by layer or is not said."""
    layers, heads = (
        _whole(header, f"{architecture}.block_count"),
        _whole(header, f"{architecture}.attention.head_count"),
    )
    kv_key = f"{architecture}.attention.head_count_kv"
    kv_heads = _whole(header, kv_key) if kv_key in header.pairs else heads
    width = _whole(header, f"{architecture}.embedding_length")
    if not (layers and heads and kv_heads and width):
        return None
    key_width = _whole(header, f"{architecture}.attention.key_length") or width // heads
    value_width = _whole(header, f"{architecture}.attention.value_length") or width // heads
    return layers * kv_heads * (key_width + value_width) * KV_VALUE_BYTES
