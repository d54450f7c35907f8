"""Writes README.md from results.json, so that its numbers are the measured ones."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import layout
from corpus import HELD_OUT_PERCENT, SOURCES
from safetensors import safe_open
from shape import SHAPES

HEADS = ("eagle", "eagle3")

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
SEEN = """## Seen

| engine | what was seen | weights |
|---|---|---|
| llama.cpp, build 11549 | on a processor: Q8_0 gave what is measured above, F16 the same tokens as transformers | these |
| transformers 5.23.0 | on a processor, in float32: the greedy tokens measured above | these |
| vLLM 0.32.0 | on a processor, 2026-11-20, with the options above: chat, tool calls, thinking | these |
| SGLang 0.5.16 | on an H200, 2026-11-20, with the options above: chat, a tool call, thinking | former |
| SGLang 0.5.16 | on an H100 and an H200, 2026-11-26, in float16: n-grams, draft model, both heads, trees | these |
| vLLM 0.26.0 | on an H100 and an H200, 2026-11-26, in float32: n-grams, draft model, both heads, tool calls | these |

SGLang was seen with the former weights of the same shape and template; their tokenizer was another of the same size.
"""
TOOL_SORTS = {
    "fresh": "known phrasings with new values and sets",
    "held_out": "phrasings, frames and values kept from training",
}
WEAKNESS = """
A tool call is right when its name and all arguments are the expected ones. What fails with phrasings and values kept
from training is mostly an order of words that training never shows, such as "Graz: when does the sun rise?": the model
then copies the wrong words, or says that it has no tool for that.
"""
TRAINING = """Losses are nats a token. `talk` counts the assistant's words in full and the rest by a fiftieth. Agreement:
how often the draft's likeliest next token is the target's. A second run, with batches of 65,536 tokens, gave much the
same (96.8 % and 92.8 % with phrasings kept from training); the better of the two is here.
"""
HEADS_TEXT = """`hf-eagle` and `hf-eagle3` draft for the target as EAGLE and EAGLE-3 heads: one layer each, trained on what
the target computes of the texts above, with five guesses in a row, as an engine makes them. Embeddings and output matrix
are the target's. How often a guess is the target's likeliest token on held-out text, the words before it being given:
"""
MTP_TEXT = """\
There is no head for multi-token prediction (MTP): neither engine loads one for this architecture. vLLM takes MTP
layers by the model's type, and answers a Llama's with `NotImplementedError: Unsupported speculative method: 'mtp'`
(0.26.0 on an H200, 0.32.0 on a processor). SGLang 0.5.16 has `NEXTN` as another name of EAGLE, and a class for such
layers for some architectures, of which Llama is none: it takes the whole model for its own draft, and ends on an H200
with `AttributeError: 'VocabParallelEmbedding' object has no attribute 'weight'`. `stoker plan` refuses
`speculation = "mtp"` for a model whose files hold no such layers.
"""
MAKE = """## Make it again

    pip install -r requirements.txt
    python corpus.py        # Debian packages -> build/corpus, dialogue/vocabulary.txt
    python tokenizer.py     # hf/tokenizer.json
    python data.py          # build/tokens
    python train.py         # one GPU; hf/ and hf-draft/
    python train_heads.py   # one GPU, some minutes each; hf-eagle/ and hf-eagle3/
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
    return (
        "## Measured\n\nGreedy, Q8_0 through llama.cpp's server unless another type is named.\n\n"
        + table(("what", "result"), rows)
        + WEAKNESS
    )


def training(results: dict[str, Any]) -> str:
    """The run that made the weights: the target first, then the draft."""
    runs = [run for run in results["training"] if run["role"] not in HEADS]
    rows = []
    for run in runs:
        last = run["log"][-1]
        losses = f"talk {last['talk']}, text {last['text']}"
        held = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in run["held_out"].items())
        rows.append((run["role"], run["batch_tokens"], run["seed"], round(run["seconds"]), last["step"], losses, held))
    head = ("model", "batch tokens", "seed", "seconds", "steps", "last losses", "held-out text")
    total_s = round(sum(run["seconds"] for run in runs))
    ran = f"One fresh run of the scripts as they are, on one {runs[0]['device']}: {total_s} seconds.\n\n"
    return f"## Training\n\n{ran}{TRAINING}\n{table(head, rows)}"


def heads(results: dict[str, Any]) -> str:
    """The draft heads: how they were trained, and how often each guess in a row is the target's likeliest token."""
    rows: list[tuple[object, ...]] = []
    for run in (one for one in results["training"] if one["role"] in HEADS):
        folder = layout.HF_FOLDERS[run["role"]]
        with safe_open(folder / "model.safetensors", "np") as file:
            names = list(file.keys())
            count = sum(prod(file.get_slice(name).get_shape()) for name in names)
        guesses = (", ".join(percent(one) for one in run["held_out"][f"agreement_{kind}"]) for kind in ("code", "prose"))
        rows.append((folder.name, f"{count:,}", run["device"], round(run["seconds"]), run["log"][-1]["step"], *guesses))
    head = ("folder", "parameters", "trained on one", "seconds", "steps", "1st to 5th guess, code", "prose")
    return f"## Draft heads\n\n{HEADS_TEXT}\n{table(head, rows)}\n{MTP_TEXT}"


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
    parts = (PURPOSE, sizes(), measured(results["checks"]), training(results), heads(results), USE, SEEN, MAKE, licences())
    args.out.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
