"""What a server says of its models: how many tokens fit into the context, and what the model is called there."""

from __future__ import annotations

from typing import Any

from stoker.probes.kit.asker import Asker
from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.reply import read_json

FIELDS = ("max_model_len", "context_length", "context_window")  # vLLM and SGLang say the first, hosted ones the others


async def read_context_tokens(ask: Asker) -> int | None:
    """Returns the context of one request, from /v1/models here or at the engine; None where neither says it."""
    if ask.target.context_tokens is not None:
        return ask.target.context_tokens
    for one in (ask, ask.engine()):
        if one is not None and (found := await _read(one)) is not None:
            return found
    return None


async def read_name(ask: Asker) -> str:
    """Returns what a server calls the model: the name asked for where it knows it, else that of its only model.

    A router may give the model another name than the engine behind it does.
    """
    listed = [str(one.get("id")) for one in await _list(ask)]
    return ask.target.model if ask.target.model in listed or len(listed) != 1 else listed[0]


async def _read(ask: Asker) -> int | None:
    listed = await _list(ask)
    mine = [one for one in listed if one.get("id") == ask.target.model] or listed[:1]
    return next((count for one in mine if (count := _tokens(one)) is not None), None)


async def _list(ask: Asker) -> list[dict[str, Any]]:
    try:
        models = read_json(await ask.send("/models", method="GET")).get("data")
    except Trouble:
        return []
    return [one for one in models if isinstance(one, dict)] if isinstance(models, list) else []


def _tokens(model: dict[str, Any]) -> int | None:
    meta = model.get("meta")
    # llama.cpp: what one of its slots has, not what the model was trained on.
    said = [*(model.get(field) for field in FIELDS), meta.get("n_ctx") if isinstance(meta, dict) else None]
    return next((one for one in said if isinstance(one, int) and one > 0), None)
