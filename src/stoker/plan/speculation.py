"""Chooses how a model speculates: what the wish says, else what the model or its draft can do. Pure."""

from __future__ import annotations

import msgspec

from stoker.errors import Refused
from stoker.plan.wishes import USER
from stoker.records import Model, Record, SpeculationKind, Wish


class Speculation(Record, frozen=True):
    """One way to draft tokens, and who chose it."""

    kind: SpeculationKind
    draft_path: str | None
    because: str


OFF = Speculation("off", None, "")
WITH_DRAFT = frozenset({"draft", "eagle", "eagle3"})


def choose_speculation(wish: Wish, model: Model, draft: Model | None, draft_kind: SpeculationKind | None) -> Speculation:
    """Returns the speculation of a plan; raises Refused where what was asked for cannot work.

    `draft_kind` is what a rule knows this draft to be, where its architecture does not tell.
    """
    if wish.speculation == "off":
        return OFF
    if wish.speculation == "auto":
        return _automatic(model, draft, draft_kind)
    if wish.speculation in WITH_DRAFT:
        if draft is None:
            raise Refused(
                f"speculation with `{wish.speculation}` needs `draft`",
                why=f"{model.name} brings no draft model along",
                next_step="name the draft's folder or hub name, or use speculation = 'ngram'",
            )
        kind = draft_kind or wish.speculation
        _check_fit(kind, model, draft)
        return Speculation(kind, draft.path, USER)
    if wish.speculation == "mtp" and draft is not None and draft_kind == "mtp":
        return Speculation("mtp", draft.path, USER)
    if wish.speculation == "mtp" and not model.draft_layers:
        raise Refused(
            f"{model.name} has no draft heads of its own",
            why="its files hold no MTP layers",
            next_step="use speculation = 'draft' with a small model of the family, or 'ngram'",
        )
    return Speculation(wish.speculation, None, USER)


def _automatic(model: Model, draft: Model | None, draft_kind: SpeculationKind | None) -> Speculation:
    if draft is not None:
        kind = draft_kind or head_kind(draft)
        _check_fit(kind, model, draft)
        return Speculation(kind, draft.path, f"{draft.name} drafts for it")
    if model.draft_layers:
        return Speculation("mtp", None, "the model brings its own draft heads")
    return OFF


def kind_of(value: object) -> SpeculationKind:
    """Returns a kind of drafting as a rule names it."""
    kind: SpeculationKind = msgspec.convert(value, SpeculationKind)
    return kind


def head_kind(draft: Model) -> SpeculationKind:
    """Returns what a draft is by its architecture: an EAGLE head of either generation, or a model of its own."""
    said = f"{draft.architecture} {draft.model_type or ''} {draft.name}".lower()
    return "eagle3" if "eagle3" in said else "eagle" if "eagle" in said else "draft"


def _check_fit(kind: SpeculationKind, model: Model, draft: Model) -> None:
    _check_width(kind, model, draft)
    ours, theirs = model.vocabulary_hash, draft.vocabulary_hash
    if kind == "draft" and ours is not None and theirs is not None and ours != theirs:
        raise Refused(
            f"{draft.name} cannot draft for {model.name}",
            why="their vocabularies differ, so its tokens would mean other words",
            next_step="use a draft model of the same family",
        )


def _check_width(kind: SpeculationKind, model: Model, draft: Model) -> None:
    # EAGLE of the first generation reads its target's hidden states and shares its embeddings; the third may differ.
    ours, theirs = model.hidden_size, draft.hidden_size
    if kind == "eagle" and ours is not None and theirs is not None and ours != theirs:
        raise Refused(
            f"{draft.name} is no head for {model.name}",
            why=f"it was trained for a model of width {theirs:,}, and this one's is {ours:,}",
            next_step="use the head that was trained for this very model",
        )
