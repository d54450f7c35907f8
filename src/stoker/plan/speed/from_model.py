"""Makes what is served of the facts about a model's files. Pure."""

from __future__ import annotations

from stoker.plan.speed.catalog import find_shape
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.shape import MILLION, Shape, usual_shape
from stoker.plan.speed.work import Served
from stoker.records import Model

MIXER_SHARE = 0.25  # of what every token passes through, attention and the like; the rest is feed-forward
MILLIONS_IN_A_BILLION = 1e3


def served_of(model: Model, engine: str) -> Served | None:
    """Returns the model as an engine serves it; None where its files do not even tell how many parameters it has."""
    shape = shape_of(model)
    if shape is None:
        return None
    quantisation = model.quantisation or ""
    return Served(shape, plan_layout(shape, quantisation, engine, model.file_bytes / 1e9), engine)


def shape_of(model: Model) -> Shape | None:
    """Returns the shape by the model's name where that is known, else what its files say of it."""
    total_b = model.parameters / 1e9 if model.parameters else None
    for name in (model.repository, model.name, model.path):
        shape = find_shape(name, total_b) if name else None
        if shape is not None and not shape.is_guess:
            return shape
    if total_b is None:
        return find_shape(model.name)
    return _from_files(model, total_b)


def _from_files(model: Model, total_b: float) -> Shape:
    active_b = model.active_parameters / 1e9 if model.active_parameters else None
    usual = usual_shape(model.name, total_b, active_b)
    if not model.layers or not model.hidden_size or not model.vocabulary_size:
        return usual
    head = min(model.vocabulary_size * model.hidden_size / MILLION, 0.9 * total_b * MILLIONS_IN_A_BILLION)
    experts, chosen = model.experts or 0, model.experts_per_token or 0
    routed = 0.0
    if experts and chosen and active_b:
        routed = (total_b - active_b) * MILLIONS_IN_A_BILLION / (1 - chosen / experts)
    rest = max(0.0, total_b * MILLIONS_IN_A_BILLION - routed - head)
    embed = head if rest > head else 0.0
    full, window = (tuple(one for one in model.cache if bool(one.window_tokens) == bounded) for bounded in (False, True))
    return Shape(
        names=(model.name,), layers=model.layers, head=head, embed=embed, routed=routed, experts=experts,
        experts_per_token=chosen, mlp=(rest - embed) * (1 - MIXER_SHARE), mixer=(rest - embed) * MIXER_SHARE,
        kv=sum(one.values_per_token for one in full), window_kv=sum(one.values_per_token for one in window),
        window=max((one.window_tokens or 0 for one in window), default=0),
        state_mb=sum(one.state_bytes for one in model.cache) / MILLION,
        width=model.hidden_size * sum(one.layers for one in full if one.kind in ("full", "mla")),
        window_width=model.hidden_size * sum(one.layers for one in window),
    )  # fmt: skip
