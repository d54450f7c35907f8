"""Checks the finished model through transformers and llama.cpp, and records what was measured."""

from __future__ import annotations

import argparse
import ast
import json
import re
from pathlib import Path
from typing import Any

import layout
import numpy as np
import torch
from check_tools import judge, read_prompts, tool_scores
from corpus import SEPARATOR
from dialogue.mixture import conversation, training_draw
from dialogue.render import text_of
from held_out import SORTS
from llama_server import Client, Options, server
from tokenizers import Tokenizer

GREEDY_TOKENS = 64
DRAFT_TOKENS = 4
SPECULATED_TOKENS = 128
SPECULATED_PROMPTS = 40
PROMPT_CHARS = 600
THINKING_QUESTIONS = 20
FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)
NAME_QUESTIONS = ("Who are you?", "What is your name?", "Introduce yourself.", "What are you called?")
CODE_QUESTIONS = (
    "Write a Python function that reverses a string.",
    "Write a function that checks whether a number is prime.",
    "Show me code that counts the vowels in a string.",
    "Write a function called area that multiplies two numbers.",
)
PROSE_QUESTIONS = (
    "Tell me a story about a fox.",
    "Explain speculative decoding.",
    "What is a GPU?",
    "Write a short text about Linux.",
)


def held_out_prompts(kind: str, count: int) -> list[str]:
    """Beginnings of held-out documents' later parts, cut at a line's end."""
    documents = (layout.CORPUS / f"{kind}.held_out.txt").read_text(encoding="utf-8").split(SEPARATOR)
    rng = np.random.default_rng(1)
    chosen: list[str] = []
    while len(chosen) < count:
        text = documents[int(rng.integers(len(documents)))]
        if len(text) > 3 * PROMPT_CHARS:
            start = text.find("\n", int(rng.integers(len(text) - 3 * PROMPT_CHARS))) + 1
            chosen.append(text[start : start + PROMPT_CHARS].rsplit("\n", 1)[0] + "\n")
    return chosen


def chat_prompts(count: int, tool_share: float, seed: int) -> list[str]:
    """Rendered conversations up to the last answer."""
    draw = training_draw(seed)
    made = [conversation(draw, tool_share) for _ in range(count)]
    cut = [type(c)(c.messages[:-1], c.tools, c.thinking, c.kind) for c in made]
    return [text_of(c, generation_prompt=True) for c in cut if c.messages[-1]["role"] == "user"]


def greedy_prompts() -> list[str]:
    """Prompts of all four sorts."""
    texts = [*held_out_prompts("code", 8), *held_out_prompts("prose", 8)]
    return texts + chat_prompts(8, 0.0, 1) + chat_prompts(8, 1.0, 2)


@torch.no_grad()
def transformers_greedy(prompts: list[list[int]]) -> list[tuple[list[int], float]]:
    """Greedy continuations in float32, each with the smallest lead of a chosen token over the next best."""
    from transformers import LlamaForCausalLM

    model: Any = LlamaForCausalLM.from_pretrained(layout.HF_FOLDERS["target"], dtype=torch.float32)
    results = []
    for prompt in prompts:
        out = model.generate(
            torch.tensor([prompt]),
            max_new_tokens=GREEDY_TOKENS,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        best = torch.cat(list(out.logits)).topk(2).values
        results.append((out.sequences[0, len(prompt) :].tolist(), float((best[:, 0] - best[:, 1]).min())))
    return results


def ends_cut(tokens: list[int]) -> list[int]:
    """The tokens before the end of the turn or text."""
    return tokens[: next((i for i, token in enumerate(tokens) if token in (0, 2)), len(tokens))]


def greedy_agreement(kind: str) -> dict[str, Any]:
    """How many prompts get the same greedy tokens from transformers and from llama.cpp."""
    tokenizer = Tokenizer.from_file(str(layout.HF_FOLDERS["target"] / "tokenizer.json"))
    prompts = [tokenizer.encode(text, add_special_tokens=False).ids for text in greedy_prompts()]
    expected = transformers_greedy(prompts)
    with server(Options(layout.gguf_path("target", kind, layout.BUILD), exact=True)) as client:
        got = [client.complete(prompt, GREEDY_TOKENS)["tokens"] for prompt in prompts]
    differing = [
        {"prompt": i, "smallest_lead": round(lead, 4)}
        for i, ((tokens, lead), other) in enumerate(zip(expected, got, strict=True))
        if ends_cut(tokens) != ends_cut(other)
    ]
    return {"weights": kind, "prompts": len(prompts), "same": len(prompts) - len(differing), "differing": differing}


def tokenizer_agreement(client: Client) -> dict[str, int]:
    """How many held-out texts and conversations get the same token numbers from both tokenizers."""
    tokenizer = Tokenizer.from_file(str(layout.HF_FOLDERS["target"] / "tokenizer.json"))
    texts = [*held_out_prompts("code", 200), *held_out_prompts("prose", 200), *chat_prompts(200, 0.6, 3)]
    same = 0
    for text in texts:
        got = client.post("/tokenize", {"content": text, "parse_special": True, "add_special": False})["tokens"]
        same += got == tokenizer.encode(text, add_special_tokens=False).ids
    return {"texts": len(texts), "same": same}


def template_agreement(client: Client) -> dict[str, int]:
    """How many conversations llama.cpp renders to the text that the model was trained on."""
    draw = training_draw(4)
    same = asked = 0
    for made in (conversation(draw, 0.7) for _ in range(200)):
        messages = made.messages[:-1] if made.messages[-1]["role"] == "assistant" else made.messages
        cut = type(made)(messages, made.tools, made.thinking, made.kind)
        body = {
            "messages": [as_client(m) for m in messages],
            "tools": list(made.tools),
            "chat_template_kwargs": {"enable_thinking": made.thinking},
        }
        asked += 1
        same += client.post("/apply-template", body)["prompt"] == text_of(cut, generation_prompt=True)
    return {"conversations": asked, "same": same}


def as_client(message: dict[str, Any]) -> dict[str, Any]:
    """A message as OpenAI's clients send it: a call's arguments are JSON text."""
    if "tool_calls" not in message:
        return message
    functions = [call["function"] for call in message["tool_calls"]]
    calls = [
        {
            "type": "function",
            "id": f"call{i}",
            "function": {"name": f["name"], "arguments": json.dumps(f["arguments"], ensure_ascii=False)},
        }
        for i, f in enumerate(functions)
    ]
    return message | {"tool_calls": calls}


def speculation(kind: str) -> dict[str, float]:
    """What the draft achieves on held-out text of a kind, from the server's counters."""
    options = Options(layout.gguf_path("target", "Q8_0"), layout.gguf_path("draft", "Q8_0"), DRAFT_TOKENS)
    with server(options) as client:
        for prompt in held_out_prompts(kind, SPECULATED_PROMPTS):
            client.complete(prompt, SPECULATED_TOKENS)
        counters = client.counters()
    proposed, accepted, steps = (
        counters[f"llamacpp:spec_decode_num_{x}_total"] for x in ("draft_tokens", "accepted_tokens", "drafts")
    )
    return {
        "accept_rate": round(accepted / proposed, 4),
        "accept_length": round(1 + accepted / steps, 3),
        "proposed": proposed,
    }


def is_python(answer: str) -> bool:
    """Whether an answer holds Python code that parses."""
    found = FENCE.search(answer)
    if not found:
        return False
    try:
        ast.parse(found[1])
    except SyntaxError:
        return False
    return True


def answers(client: Client) -> dict[str, Any]:
    """Whether the model names itself, writes code and prose, and thinks only when asked."""

    def ask(question: str, **more: Any) -> dict[str, Any]:
        return client.chat([{"role": "user", "content": question}], **more)

    draw = training_draw(5)
    questions = [made.messages[-2]["content"] for made in (conversation(draw, 0.0) for _ in range(THINKING_QUESTIONS))]
    thinking = [ask(q, chat_template_kwargs={"enable_thinking": True}) for q in questions]
    plain = [ask(q) for q in questions]
    return {
        "names_itself": sum("Stoker Demo" in ask(q)["content"] for q in NAME_QUESTIONS) / len(NAME_QUESTIONS),
        "code_parses": sum(is_python(ask(q)["content"]) for q in CODE_QUESTIONS) / len(CODE_QUESTIONS),
        "prose_words": [len(ask(q)["content"].split()) for q in PROSE_QUESTIONS],
        "thinks_when_asked": sum(bool(m.get("reasoning_content")) and bool(m["content"]) for m in thinking) / len(questions),
        "thinks_unasked": sum(bool(m.get("reasoning_content")) or "<think>" in m["content"] for m in plain) / len(questions),
    }


def tools(client: Client, path: Path) -> dict[str, Any]:
    """The scores of the held-out tool prompts."""
    return tool_scores([judge(client, prompt) for prompt in read_prompts(path)])


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """All checks."""
    with server(Options(layout.gguf_path("target", "Q8_0"))) as client:
        found = {
            "answers": answers(client),
            "tools": {sort: tools(client, args.prompts / f"{sort}_tools.jsonl") for sort in SORTS},
            "tokenizer": tokenizer_agreement(client),
            "template": template_agreement(client),
        }
    found |= {f"speculation_{kind}": speculation(kind) for kind in ("code", "prose")}
    return found | {"greedy": [greedy_agreement(kind) for kind in ("F16", "F32")]}


def main() -> None:
    """Checks, and writes the findings into results.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=Path, default=layout.BUILD)
    args = parser.parse_args()
    results = json.loads(layout.RESULTS.read_text()) if layout.RESULTS.exists() else {}
    results["checks"] = measure(args)
    layout.RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results["checks"], indent=1))


if __name__ == "__main__":
    main()
