"""Finds the safetensors files that make up a model in a folder, and reads all their headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.errors import Refused
from stoker.facts.model.documents import LIMIT_BYTES, MOST, read_content
from stoker.facts.model.safetensors import Header, Tensor, read_header

INDEX_LIMIT_BYTES = 8 * LIMIT_BYTES  # a line for every tensor of every expert
NATIVE = "consolidated"  # what Mistral calls its own format's files
NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")
LISTED = 4
MOST_SHARDS = 9999
WITHOUT_INDEX = "files of weights and no model.safetensors.index.json that says which tensor is where"


class _Totals(msgspec.Struct):
    total_size: float | None = None  # some tools write it with a point


class _Index(msgspec.Struct):
    weight_map: dict[str, str]
    metadata: _Totals | None = None


class Found(NamedTuple):
    """Which files hold the weights: those that are there, those that should be, and where the index puts each tensor."""

    files: tuple[Path, ...]
    absent: tuple[str, ...] = ()
    shard_of: dict[str, str] | None = None
    total_bytes: int | None = None


class Weights(NamedTuple):
    """All tensors that could be read, and how many bytes of weights the model has, the missing ones included."""

    tensors: dict[str, Tensor]
    file_bytes: int
    found: Found
    refusals: tuple[Refused, ...]


def find_weights(folder: Path, problems: list[str]) -> Found:
    """Returns the files of one model. A folder may hold the same weights twice, in both layouts: the first is meant."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".safetensors"))
    there = [name for name in names if (folder / name).is_file()]  # a hub's link may lead nowhere
    indexes = sorted(folder.glob("*.safetensors.index.json"), key=lambda file: (file.name.startswith(NATIVE), file.name))
    promised = [_from_index(folder, index, problems) for file in indexes if (index := _read_index(file, problems))]
    whole = next((found for found in promised if found.files), None)
    if whole or (promised and not there):
        return whole or promised[0]
    if "model.safetensors" in there:
        return Found((folder / "model.safetensors",))
    own = [name for name in names if not name.startswith(NATIVE)] or names
    absent = {name for name in own if name not in there} | _missing_numbers(own)
    if len(own) > 1 and not own[0].startswith(NATIVE):
        problems.append(f"{len(own)} {WITHOUT_INDEX}")
    return Found(tuple(folder / name for name in own if name in there), tuple(sorted(absent)))


def _read_index(file: Path, problems: list[str]) -> _Index | None:
    content = read_content(file, problems, INDEX_LIMIT_BYTES)
    if content is None:
        return None
    try:
        return msgspec.json.decode(content, type=_Index)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as problem:
        problems.append(f"{file.name} is damaged: {problem}")
        return None


def _from_index(folder: Path, index: _Index, problems: list[str]) -> Found:
    shards = sorted(set(index.weight_map.values()))
    inside = [name for name in shards if Path(name).name == name and name.isprintable()]
    if len(inside) < len(shards):
        problems.append("its index names files outside the folder, which are not read")
    absent = tuple(name for name in inside if not (folder / name).is_file())
    total = index.metadata.total_size if index.metadata else None
    total_bytes = int(total) if total is not None and 0 <= total <= MOST * 1024 else None
    files = tuple(folder / name for name in inside if name not in absent)
    return Found(files, absent, index.weight_map, total_bytes)


def _missing_numbers(names: list[str]) -> set[str]:
    missing: set[str] = set()
    kinds = {(found["stem"], int(found["count"])) for name in names if (found := NUMBERED.fullmatch(name))}
    for stem, count in kinds:
        if count <= MOST_SHARDS:
            missing |= {f"{stem}-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)}
    return missing - set(names)


def read_weights(found: Found, problems: list[str]) -> Weights:
    """Returns what all headers say together; each file that is broken, cut or not as the index says is noted."""
    tensors: dict[str, Tensor] = {}
    refusals: list[Refused] = []
    placed: dict[str, str] = {}
    read: list[str] = []
    known_bytes = 0
    for file in found.files:
        try:
            header = read_header(file)
        except Refused as refused:
            refusals.append(refused)
            problems.append(f"{refused.what.replace(str(file), file.name)}: {refused.why}")
            continue
        problems += _faults(file.name, header)
        known_bytes += header.need_bytes
        alone = len(tensors) + len(header.tensors)
        tensors |= header.tensors
        if len(tensors) < alone:
            problems.append(f"{file.name} holds {_list(placed.keys() & header.tensors)}, which another file holds too")
        placed |= dict.fromkeys(header.tensors, file.name)
        read.append(file.name)
    if found.shard_of is not None and placed != found.shard_of:
        problems += _differences(read, placed, found.shard_of)
    is_whole = not found.absent and not refusals
    file_bytes = known_bytes if is_whole else max(known_bytes, found.total_bytes or 0)
    return Weights(tensors, file_bytes, found, tuple(refusals))


def _faults(name: str, header: Header) -> Iterator[str]:
    if header.file_bytes < header.need_bytes:
        ends = f"its tensors end at byte {header.need_bytes:,}, the file at byte {header.file_bytes:,}"
        yield f"{name} is cut short: {ends}"
    if header.file_bytes > header.need_bytes:
        extra_bytes = header.file_bytes - header.need_bytes
        yield f"{name} has {extra_bytes:,} bytes after its last tensor, and loaders refuse it"


def _differences(read: list[str], placed: dict[str, str], shard_of: dict[str, str]) -> Iterator[str]:
    """Yields what differs in each file that could be read: a missing or broken one is spoken of elsewhere."""
    held, due = _by_shard(placed), _by_shard(shard_of)
    for name in read:
        tensors, promised = held.get(name, set()), due.get(name, set())
        if lacking := promised - tensors:
            yield f"{name} lacks {_list(lacking)}, which the index puts there"
        if surplus := tensors - promised:
            yield f"{name} holds {_list(surplus)}, which the index does not put there"


def _by_shard(shard_of: dict[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for tensor, shard in shard_of.items():
        found.setdefault(shard, set()).add(tensor)
    return found


def _list(names: set[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(name[:80] for name in sorted(names)[:LISTED]) + more
