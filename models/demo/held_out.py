"""Prompts with tools that training never showed.

Held out: phrasings, values and frames are kept from training. Fresh: the phrasings are known, the values and the
sets of tools are new.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import layout
from dialogue.draw import Draw
from dialogue.mixture import chat_beside_tools, system_turn
from dialogue.records import Conversation
from dialogue.tool_talk import beside_tools, with_call, without_fit

SEED = 20261121
SORTS = ("held_out", "fresh")
SHARES = (("call", 0.8), ("no fit", 0.1), ("beside tools", 0.1))


def made(draw: Draw, kind: str) -> Conversation:
    """One held-out conversation of a kind."""
    before = system_turn(draw)
    if kind == "call":
        return with_call(draw, before, thinking=False)
    if kind == "no fit":
        return without_fit(draw, before, thinking=False)
    return beside_tools(draw, before, chat_beside_tools(draw), thinking=False)


def prompt_of(conversation: Conversation) -> dict[str, Any]:
    """What a client sends, and the call that should come back (None for a plain answer)."""
    *asked, answer = conversation.messages
    calls = answer.get("tool_calls")
    return {
        "kind": conversation.kind,
        "messages": asked,
        "tools": list(conversation.tools),
        "expected": calls[0]["function"] if calls else None,
    }


def prompts(count: int, held_out: bool, seed: int = SEED) -> Iterator[dict[str, Any]]:
    """The prompts of one sort, always the same for a seed."""
    draw = Draw(random.Random(seed), held_out)
    kinds = [kind for kind, share in SHARES for _ in range(round(count * share))]
    draw.rng.shuffle(kinds)
    for kind in kinds:
        yield prompt_of(made(draw, kind))


def write(path: Path, count: int, held_out: bool, seed: int = SEED) -> None:
    """Writes prompts as one JSON object a line."""
    lines = [json.dumps(prompt, ensure_ascii=False) for prompt in prompts(count, held_out, seed)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Writes both sorts of prompts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--out", type=Path, default=layout.BUILD)
    args = parser.parse_args()
    for sort in SORTS:
        write(args.out / f"{sort}_tools.jsonl", args.count, sort == "held_out")


if __name__ == "__main__":
    main()
