"""Turns conversations into text with the model's own chat template, and into weighted tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import jinja2
import layout
import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from dialogue.records import Conversation

PROMPT_WEIGHT = 0.02
TURN = re.compile(r"(?<=<\|im_start\|>assistant\n)(.*?<\|im_end\|>)", re.DOTALL)


@cache
def template() -> jinja2.Template:
    """The chat template in an environment like that of transformers."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)  # noqa: S701  (the output is no HTML)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(layout.TEMPLATE.read_text())


def text_of(conversation: Conversation, generation_prompt: bool = False) -> str:
    """The conversation as the model reads it."""
    variables: dict[str, Any] = {"messages": conversation.messages, "tools": list(conversation.tools) or None}
    variables |= {"enable_thinking": conversation.thinking, "add_generation_prompt": generation_prompt}
    return template().render(**variables)


def tokens_of(texts: Sequence[str], tokenizer: Tokenizer) -> list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint8]]]:
    """Token numbers of each text, and whether a token was written by the assistant.

    Splitting at turns does not change the tokens: a control token stands at both ends of every part.
    """
    parts = [TURN.split(text) for text in texts]
    encoded = iter(tokenizer.encode_batch_fast([part for split in parts for part in split], add_special_tokens=False))
    rows = []
    for split in parts:
        pieces = [next(encoded).ids for _ in split]
        tokens = np.fromiter((token for piece in pieces for token in piece), dtype=np.uint16)
        spoken = np.repeat(np.arange(len(pieces), dtype=np.uint8) % 2, [len(piece) for piece in pieces])
        rows.append((tokens, spoken))
    return rows
