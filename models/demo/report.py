"""Writes README.md from results.json, so that its numbers are the measured ones."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import layout
from corpus import HELD_OUT_PERCENT, SOURCES
from shape import SHAPES

PURPOSE = """# Stoker Demo

A tiny Llama model that ships with Stoker, so that a machine can be tried without a download, and a draft model for
speculative decoding. It chats a little, does small sums, writes short Python functions, calls tools and thinks when
`enable_thinking` is set. It knows very little and says so; do not use it for anything but trying a machine.

Everything here is made by the scripts beside this file. Written by `report.py` from `results.json`: do not edit.
"""
USE = """## Use

| engine | how |
|---|---|
| llama.cpp | `--jinja --reasoning off`; a request thinks with `chat_template_kwargs: {"enable_thinking": true}` |
| vLLM | `--enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser deepseek_v3` |
| SGLang | `--tool-call-parser qwen --reasoning-parser deepseek-v3` with `chat_template_kwargs: {"thinking": true}` |
| transformers | `LlamaForCausalLM`, `apply_chat_template(..., enable_thinking=True)` |

The template ends the prompt with an empty `<think>` block unless thinking is asked for. Parsers that take thinking for
granted (`qwen3`, `deepseek_r1`) would call a plain answer a thought; `deepseek_v3` looks at the request.
On a processor, one thread is best: two wait for each other.
"""
TOOL_SORTS = {
    "fresh": "known phrasings with new values and sets",
    "held_out": "phrasings, frames and values kept from training",
}
WEAKNESS = """
A tool call is right when its name and all arguments are the expected ones. What fails with phrasings and values kept
from training is mostly the copying of a word: " owl" in a sentence and "owl" in JSON are different tokens, and the
model has to have met both. A tokenizer whose merges never join a space or a quotation mark to letters would cure that.
"""
TRAINING = """Losses are nats a token. `talk` counts the assistant's words in full and the rest by a fiftieth. The runs
follow each other; between them the generator of dialogues got more phrasings, so a run of today's scripts gives other
weights. Agreement: how often the draft's likeliest next token is the target's. Held-out text got worse in later
runs: 18 million tokens of text were seen often, and the time went into conversations.
"""
MAKE = """## Make it again

    pip install -r requirements.txt
    python corpus.py        # Debian packages -> build/corpus, dialogue/vocabulary.txt
    python tokenizer.py     # hf/tokenizer.json
    python data.py          # build/tokens
    python train.py         # one GPU; hf/ and hf-draft/
    python train.py --resume --target-minutes 7 --draft-minutes 1.6
    python export_gguf.py   # GGUF files
    python held_out.py      # prompts that training never shows
    python check.py         # results.json
    python report.py        # this file
"""


def table(head: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def percent(share: float) -> str:
    """A share of one in percent."""
    return f"{100 * share:.1f} %"


def sizes() -> str:
    """The shapes of both models."""
    rows = [
        (
            role,
            f"{s.parameters:,}",
            s.layers,
            s.hidden,
            f"{s.heads}/{s.kv_heads}",
            s.feed_forward,
            s.vocabulary,
            s.context,
        )
        for role, s in SHAPES.items()
    ]
    return "## Models\n\n" + table(
        ("model", "parameters", "layers", "width", "heads/kv", "feed-forward", "vocabulary", "context"), rows
    )


def measured(checks: dict[str, Any]) -> str:
    """What `check.py` found."""
    answers, tools = checks["answers"], checks["tools"]
    rows: list[tuple[object, ...]] = []
    for sort, what in TOOL_SORTS.items():
        found = tools[sort]
        kinds = "; ".join(f"{kind}: {share}" for kind, share in found["by_kind"].items())
        shares = ", ".join(percent(found[name]) for name in ("picked", "right"))
        rows.append((f"tools, {what}: right tool with valid JSON; arguments right too", f"{shares} ({kinds})"))
    rows += [
        ("names itself", percent(answers["names_itself"])),
        ("Python answers parse", percent(answers["code_parses"])),
        ("thinks when asked", percent(answers["thinks_when_asked"])),
        ("thinks unasked", percent(answers["thinks_unasked"])),
        (
            "token numbers equal in llama.cpp and tokenizers",
            f"{checks['tokenizer']['same']} of {checks['tokenizer']['texts']} texts",
        ),
        (
            "template equal in llama.cpp and jinja2",
            f"{checks['template']['same']} of {checks['template']['conversations']} conversations",
        ),
    ]
    for kind in ("code", "prose"):
        found = checks[f"speculation_{kind}"]
        rows.append(
            (
                f"draft on held-out {kind}: accept_rate, accept_length",
                f"{found['accept_rate']}, {found['accept_length']}",
            )
        )
    for found in checks["greedy"]:
        leads = ", ".join(str(d["smallest_lead"]) for d in found["differing"])
        note = f"; differing where the best two logits are {leads} apart" if leads else ""
        rows.append(
            (
                f"64 greedy tokens equal, transformers float32 and llama.cpp {found['weights']}",
                f"{found['same']} of {found['prompts']}{note}",
            )
        )
    return "## Measured\n\nGreedy, Q8_0 through llama.cpp's server unless another type is named.\n\n" + table(
        ("what", "result"), rows
    )


def training(results: dict[str, Any]) -> str:
    """The runs that made the weights, in order."""
    rows = []
    for run in results["training"]:
        last = run["log"][-1]
        losses = f"talk {last['talk']}, text {last['text']}"
        held = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in run["held_out"].items())
        begun = "resumed" if run["resumed"] else "fresh"
        rows.append((run["role"], begun, run["device"], run["seed"], round(run["seconds"]), last["step"], losses, held))
    head = ("model", "weights", "device", "seed", "seconds", "steps", "last losses", "held-out text")
    return f"## Training\n\n{TRAINING}\n{table(head, rows)}"


def licences() -> str:
    """Where the texts come from."""
    rows: list[tuple[object, ...]] = [(s.package, s.kind, s.licence) for s in SOURCES]
    text = table(("Debian 12 package", "kind", "licence"), rows)
    return (
        "## Data and licences\n\nThe scripts, the dialogues and the weights are under Apache-2.0. The texts below were "
        f"read, {HELD_OUT_PERCENT} % of the files held out; none of them is in this folder. "
        f"Dialogues are generated by `dialogue/`.\n\n{text}"
    )


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=layout.HERE / "README.md")
    args = parser.parse_args()
    results = json.loads(layout.RESULTS.read_text())
    parts = (PURPOSE, sizes(), measured(results["checks"]), training(results), USE, MAKE, licences())
    args.out.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
