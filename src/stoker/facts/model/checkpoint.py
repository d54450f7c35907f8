"""Reads a folder of safetensors: its headers, its config and what lies beside them. No tensor is read.

What is damaged or missing is noted in the model, so that a plan can still be estimated; Refused is for a folder without a
single readable tensor.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from stoker.errors import Refused
from stoker.facts.model.architecture import Shape, read_shape
from stoker.facts.model.attention import kv_bytes_per_token, read_cache
from stoker.facts.model.completeness import CONFIG, PARAMS, TOKENIZER_CONFIG, Contents, find_layouts, find_missing
from stoker.facts.model.documents import Document, read_document
from stoker.facts.model.hub import name_of
from stoker.facts.model.mistral import to_config
from stoker.facts.model.parameters import Counts, active_parameters, count_parameters
from stoker.facts.model.quantisation import name_cache_quantisation, name_quantisation, quantisation_table, read_packing
from stoker.facts.model.readme import Card, read_card
from stoker.facts.model.template import read_template, template_features
from stoker.facts.model.tokenizer import read_vocabulary
from stoker.facts.model.weights import WITHOUT_INDEX, Weights, find_weights, read_weights
from stoker.records import Model

QUANTISATION_FILE = "hf_quant_config.json"
EAGLE_TENSOR = "eagle_linear.weight"  # Mistral's heads do not say what they are, but hold this
MOST_DRAFT_LAYERS = 64
NATIVE_ONLY = "it has params.json and no config.json, so only a loader of Mistral's own format takes it (vLLM has one)"


class _Config(NamedTuple):
    shape: Shape
    document: Document
    quantisation: Document


def read_checkpoint(folder: Path) -> Model:
    """Returns the model whose safetensors lie in a folder; raises Refused where nothing of it can be read."""
    with _without_collector():
        return _read(folder)


@contextmanager
def _without_collector() -> Iterator[None]:
    # A model of 55,000 tensors makes 110,000 tuples that all live on: the collector walks them again and again, and took
    # 60 of 180 ms.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(folder: Path) -> Model:
    problems: list[str] = []
    weights = read_weights(find_weights(folder, problems), problems)
    _check_readable(folder, weights)
    are_whole = not [problem for problem in problems if WITHOUT_INDEX not in problem]
    config = _read_config(folder, weights, problems)
    counts = _count(config, weights)
    repository, revision = name_of(folder)
    model = Model(
        path=str(folder.absolute()),  # not resolved: a hub's cache links to blobs that have lost their names
        name=repository.rpartition("/")[2] if repository else folder.absolute().name,
        architecture=config.shape.architecture,
        file_bytes=weights.file_bytes,
        parameters=counts.parameters,
        quantisation=name_quantisation(config.quantisation, weights.tensors),
        context_tokens=config.shape.context_tokens or None,
        kv_bytes_per_token=None,
        vocabulary_hash=None,
        has_chat_template=False,
        licence=None,
        format="safetensors",
        repository=repository,
        revision=revision,
        active_parameters=active_parameters(counts, config.shape.experts, config.shape.experts_per_token),
        bytes_by_type=counts.bytes_by_type,
        cache_quantisation=name_cache_quantisation(config.quantisation),
    )
    shaped = _with_files(_with_shape(model, config, counts, weights, problems), folder, weights, problems)
    loads = are_whole and bool(config.shape.architecture)
    return shaped if loads else msgspec.structs.replace(shaped, layouts=())  # whatever else is there: nothing loads it


def _check_readable(folder: Path, weights: Weights) -> None:
    if weights.tensors:
        return
    if weights.refusals:
        raise weights.refusals[0]
    absent = weights.found.absent
    why = f"{len(absent)} files should hold them and none is there" if absent else "its files hold no tensors"
    raise Refused(f"there are no weights in {folder}", why=why, next_step="fetch them into that folder")


def _read_config(folder: Path, weights: Weights, problems: list[str]) -> _Config:
    document = read_document(folder / CONFIG, problems)
    if not document and (params := read_document(folder / PARAMS, problems)):
        document = to_config(params)
        if not (folder / CONFIG).exists():
            problems.append(NATIVE_ONLY)
    shape = read_shape(document)
    if EAGLE_TENSOR in weights.tensors and not shape.is_draft_head:
        shape = shape._replace(architecture=f"Eagle{shape.architecture}", is_draft_head=True)
    beside = read_document(folder / QUANTISATION_FILE, problems)
    return _Config(shape, document, quantisation_table(document, beside))


def _count(config: _Config, weights: Weights) -> Counts:
    layers, draft_layers = config.shape.layers, min(config.shape.draft_layers, MOST_DRAFT_LAYERS)
    own_numbers = range(layers, layers + draft_layers) if layers else ()
    return count_parameters(weights.tensors, read_packing(config.quantisation, config.document), own_numbers)


def _with_shape(model: Model, config: _Config, counts: Counts, weights: Weights, problems: list[str]) -> Model:
    shape, cache = config.shape, read_cache(config.document)
    draft_layers = shape.draft_layers or (1 if counts.draft_tensors else 0)
    is_whole = not weights.found.absent and not weights.refusals
    if draft_layers and not counts.draft_tensors and is_whole:
        problems.append(f"its config names draft layers (MTP: {draft_layers}), and no tensor of them is in the files")
        draft_layers = 0
    return msgspec.structs.replace(
        model,
        model_type=shape.model_type,
        cache=cache,
        kv_bytes_per_token=kv_bytes_per_token(cache),
        layers=shape.layers,
        hidden_size=shape.hidden_size,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        vocabulary_size=shape.vocabulary_size,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        draft_layers=draft_layers,
        has_vision=shape.has_vision,
        is_draft_head=shape.is_draft_head,
    )


def _with_files(model: Model, folder: Path, weights: Weights, problems: list[str]) -> Model:
    card = read_card(folder, problems)
    vocabulary = read_vocabulary(folder, problems)
    template = read_template(folder, read_document(folder / TOKENIZER_CONFIG, problems), problems)
    contents = _contents(folder, model, weights, template is not None, card)
    return msgspec.structs.replace(
        model,
        vocabulary_hash=vocabulary.digest,
        has_chat_template=template is not None,
        template_features=template_features(template),
        licence=card.licence,
        layouts=find_layouts(contents),
        missing=find_missing(contents),
        problems=tuple(problems),
    )


def _contents(folder: Path, model: Model, weights: Weights, has_template: bool, card: Card) -> Contents:
    names = frozenset(entry.name for entry in folder.iterdir() if entry.is_file())
    return Contents(names, weights.found.absent, has_template, model.is_draft_head, model.repository, card)
