"""Ranks the ways to serve a model by what is known of each. Pure."""

from __future__ import annotations

from stoker.records import Alternative, Model
from stoker.rules.measured import Measured, measured_for

MOST = 12
WITHOUT_DRAFT = frozenset({"off", "ngram"})


def rank_alternatives(model: Model) -> tuple[Alternative, ...]:
    """Returns the ways that somebody measured, the fastest first; each with who measured it."""
    names = [name for name in (model.repository, model.name, model.path.rstrip("/").rsplit("/", 1)[-1]) if name]
    return tuple(_alternative(row) for row in measured_for(*names)[:MOST])


def _alternative(row: Measured) -> Alternative:
    rate = f"{row.least_tok_s:g}" if row.least_tok_s == row.most_tok_s else f"{row.least_tok_s:g} to {row.most_tok_s:g}"
    drafted = f"{row.speculation}, {row.draft_tokens} draft tokens" if row.draft_tokens else row.speculation
    note = ", ".join(part for part in (row.version, f"{row.runs} runs" if row.runs > 1 else "one run") if part)
    return Alternative(row.engine, row.quantisation, drafted, rate, row.source, note)


def fastest_engine(model: Model, engines: tuple[str, ...], has_draft: bool) -> tuple[str, str] | None:
    """Returns the engine, of those, that served this model fastest in a way that is open here; None where nobody measured.

    What needs a draft counts only where there is one, or where the model brings its own.
    """
    names = [name for name in (model.repository, model.name) if name]
    ours = (model.quantisation or "").lower()
    rows = [row for row in measured_for(*names) if row.engine in engines and row.quantisation == ours]
    rows = [row for row in rows if has_draft or model.draft_layers or row.speculation in WITHOUT_DRAFT]
    if not rows:
        return None
    best = rows[0]
    how = "" if best.speculation == "off" else f" with {best.speculation}"
    return best.engine, f"{best.most_tok_s:g} tok/s{how} measured for this model ({best.source})"
