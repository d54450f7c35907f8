"""What the engine of the tests says to a chat: a script of words, bent by the lies that it is told."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any, NamedTuple

from lying_senses import Refusal, colours_of, text_of

CONTEXT_TOKENS = 2048
SCRIPT = {
    "Who are you?": "I am the honest engine of a test, and I say the same each time.",
    "Say hello": "Hello there, how are you today?",
    "Count from 1": ", ".join(map(str, range(1, 3000))),
    "What is 17 + 25?": "It is 42.",
    "Name a city": '{"city": "Graz"}',
    "Say": "Hello.",
}
THOUGHT = "17 and 20 are 37, and 5 more are 42. So I am sure of it and will say so now."
NUMBERS = count(1)


class Said(NamedTuple):
    """What it says to one request: pieces of thought and of text, or calls of tools, and why it ended."""

    pieces: list[str]
    thoughts: list[str]
    calls: list[dict[str, Any]]
    finish: str
    prompt_tokens: int
    body: dict[str, Any]
    lies: frozenset[str]

    @property
    def tokens(self) -> int:
        """How many tokens that are; a call is counted as one."""
        return len(self.pieces) + len(self.thoughts) + len(self.calls)

    def _id(self) -> str:
        number = next(NUMBERS)
        return f"{number:032x}" if "bare-ids" in self.lies else f"chat-{number:04}"

    def usage(self) -> dict[str, Any]:
        """What is counted."""
        counted = 0 if "thoughts-uncounted" in self.lies else len(self.thoughts)
        thoughts: dict[str, Any] = {"reasoning_tokens": counted}
        return {
            "prompt_tokens": self.prompt_tokens, "completion_tokens": self.tokens,
            **(thoughts if "counts-thoughts-beside" in self.lies else {"completion_tokens_details": thoughts}),
        }  # fmt: skip

    def whole(self, model: str) -> dict[str, Any]:
        """The answer in one piece."""
        text = "" if "says-nothing" in self.lies else "".join(self.pieces)
        message = {
            "role": "assistant",
            "content": text,
            "reasoning_content": "".join(self.thoughts),
            "tool_calls": self.calls,
        }
        choices = [
            {"index": number, "message": message, "finish_reason": self.finish, "logprobs": self._logprobs()}
            for number in range(1 if "ignores-n" in self.lies else self.body.get("n", 1))
        ]
        named = "another" if "says-another-model" in self.lies else model
        number = self._id()
        return {"id": number, "object": "chat.completion", "model": named, "choices": choices, "usage": self.usage()}

    def _logprobs(self) -> dict[str, Any] | None:
        if not self.body.get("logprobs"):
            return None
        value = 0.7 if "logprobs-above-zero" in self.lies else float("nan") if "logprobs-nan" in self.lies else -0.5
        return {"content": [{"token": piece, "logprob": value} for piece in self.pieces]}

    def events(self, model: str) -> Iterator[dict[str, Any] | bytes]:
        """The answer as a stream."""
        head = {"id": self._id(), "object": "chat.completion.chunk", "model": model}
        if "speaks-of-filters-first" in self.lies:
            yield {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []}
        for delta in self._deltas():
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]}
        if "speaks-after-the-end" in self.lies and not self.body.keys() & {"stop", "response_format"}:
            yield {**head, "choices": [{"index": 0, "delta": {"content": "and"}, "finish_reason": None}]}
        if (self.body.get("stream_options") or {}).get("include_usage") and "no-usage" not in self.lies:
            yield {**head, "choices": [], "usage": self.usage()}
        if "no-done" not in self.lies:
            yield b"data: [DONE]\n\n"

    def _deltas(self) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": ""}
        yield from ({"reasoning_content": piece} for piece in self.thoughts)
        cut = "cuts-letters" in self.lies
        pieces = self.pieces[::-1] if "streams-otherwise" in self.lies else self.pieces
        yield from ({"content": "�" if cut and not piece.isascii() else piece} for piece in pieces)
        for number, call in enumerate(self.calls):
            function = call["function"]
            yield {"tool_calls": [{"index": number, **call, "function": {"name": function["name"], "arguments": ""}}]}
            arguments = function["arguments"][: -2 if "loses-deltas" in self.lies else None]
            yield from ({"tool_calls": [{"index": number, "function": {"arguments": letter}}]} for letter in arguments)


def compose(body: dict[str, Any], model: str, lies: frozenset[str]) -> Said:
    """Returns what it says; raises Refusal."""
    if body["model"] != model and "any-name" not in lies:
        raise Refusal(404, f"there is no model {body['model']}")
    _check(body, lies)
    _check_roles(body, lies)
    text = text_of(body["messages"])
    prompt_tokens = len(text.split())
    if prompt_tokens > CONTEXT_TOKENS and not lies & {"truncates", "fallback-long"}:
        raise Refusal(400, f"{prompt_tokens} tokens exceed the context of {CONTEXT_TOKENS}")
    if "cuts-prompts" in lies:
        text, prompt_tokens = text[-400:], min(CONTEXT_TOKENS // 4, prompt_tokens)
    calls = _calls(body, lies) if body.get("tools") and body["messages"][-1]["role"] != "tool" else []
    calls = [] if "only-thinks" in lies else calls
    thoughts = [] if calls else _thoughts(body, lies)
    pieces = [] if calls and "call-as-text" not in lies else _pieces(body, text, calls, lies)
    if "call-as-text" in lies:
        calls = []
    return _limited(pieces, thoughts, calls, body, prompt_tokens, lies)


def _check(body: dict[str, Any], lies: frozenset[str]) -> None:
    messages = body["messages"]
    if isinstance(messages, str) and "takes-any-type" in lies:
        body["messages"] = messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list):
        raise Refusal(400, "messages is no list")
    if "refuses-many" in lies and body.get("max_tokens", 0) > 1000:
        raise Refusal(400, "max_tokens may not be over 1000 here")
    if "refuses-tools" in lies and body.get("tools") and body.get("tool_choice", "auto") != "none":
        raise Refusal(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')


def _check_roles(body: dict[str, Any], lies: frozenset[str]) -> None:
    roles = [one["role"] for one in body["messages"]]
    wants = {
        "refuses-system": "system" in roles, "refuses-late-system": "system" in roles[1:],
        "refuses-tool-turns": "tool" in roles,
        "refuses-parts": any(isinstance(one.get("content"), list) and len(one["content"]) > 1 for one in body["messages"]),
    }  # fmt: skip
    for lie, is_so in wants.items():
        if lie in lies and is_so:
            raise Refusal(400, f"this engine {lie}")
    if "wants-alternation" in lies and ("user", "user") in pairwise(roles):
        raise Refusal(400, "Alternating roles required")
    if "breaks-on-developer" in lies and "developer" in roles:
        raise Refusal(500, "KeyError: 'developer'")


def _calls(body: dict[str, Any], lies: frozenset[str]) -> list[dict[str, Any]]:
    choice = body.get("tool_choice", "auto")
    asked = text_of(body["messages"][-1:])
    if choice == "none" and "calls-when-none" not in lies:
        return []
    if choice == "required" and "never-forced" in lies:
        return []
    if choice == "auto" and "weather" not in asked:
        return []
    named = choice["function"]["name"] if isinstance(choice, dict) and "wrong-tool" not in lies else "get_weather"
    cities = [city for city in ("Paris", "Rome") if city in asked] or ["Graz"]
    if "calls-otherwise-each-time" in lies:
        cities = [f"Graz {next(NUMBERS)}"]
    if "streams-another-call" in lies and body.get("stream"):
        cities = ["Linz"]
    field = "town" if "bad-arguments" in lies else "city"
    signs = (",", ":") if "writes-calls-anew" in lies and body.get("stream") else None
    functions = [{"name": named, "arguments": json.dumps({field: city}, separators=signs)} for city in cities]
    return [
        {"id": "call" if "same-ids" in lies else f"call{number}", "type": "function", "function": one}
        for number, one in enumerate(functions)
    ]


def _thoughts(body: dict[str, Any], lies: frozenset[str]) -> list[str]:
    effort, template = body.get("reasoning_effort"), body.get("chat_template_kwargs") or {}
    efforts = {"high"} if "ignores-efforts" in lies else {"low", "medium", "high"}
    if "only-thinks" in lies:
        return [piece + " " for piece in THOUGHT.split(" ")] * 20
    unasked = "thinks-unasked" in lies and template.get("enable_thinking") is not False
    thinks = effort in efforts or template.get("enable_thinking") or unasked
    aloud = "" if effort is None or "efforts-alike" in lies else f"With {effort} effort: "
    return [piece + " " for piece in f"{aloud}{THOUGHT}".split(" ")] if thinks else []


def _pieces(body: dict[str, Any], text: str, calls: list[dict[str, Any]], lies: frozenset[str]) -> list[str]:
    if calls or ("writes-calls" in lies and body.get("tools") and "weather" in text):
        return ["<tool_call>\n", json.dumps(calls[0]["function"]) if calls else "{}", "\n</tool_call>"]
    words = _words(body, text, lies)
    form = (body.get("response_format") or {}).get("type")
    ignores = "ignores-schema" in lies or ("ignores-schema-streamed" in lies and body.get("stream"))
    if form == "json_schema" and not ignores:
        words = '{"colour": "amber", "count": 5}'
    if body.get("temperature", 0) > 1:
        words = f"I am number {random.Random(None if 'ignores-seed' in lies else body.get('seed')).random()}"
    if body.get("logit_bias") and "ignores-bias" not in lies:
        words = "My name is no matter."
    stops = [] if "ignores-stop" in lies or ("leaks-stop" in lies and body.get("stream")) else body.get("stop") or []
    for stop in stops:
        words = words.partition(stop)[0]
    return [piece for piece in words.replace(" ", " \0").split("\0") if piece]


def _words(body: dict[str, Any], text: str, lies: frozenset[str]) -> str:
    asked, form = text_of(body["messages"][-1:]), (body.get("response_format") or {}).get("type")
    if "is-short" in lies and asked.startswith("Count"):
        return "No."
    if asked.startswith("Repeat exactly: "):
        return asked.partition(": ")[2]
    depth = text.find("secret number is ") / max(1, len(text))
    missed = {"overlooks-middle": 0.2 < depth < 0.8, "overlooks-end": depth > 0.8, "overlooks-beginning": 0 < depth < 0.2}
    if "secret number is " in text and not any(lie in lies and is_so for lie, is_so in missed.items()):
        return text.partition("secret number is ")[2].partition(".")[0]
    if "violet fog" in text and "forgets-results" not in lies:
        return "There is violet fog."
    if colours := colours_of(body["messages"]):
        return "a square" if "ignores-images" in lies else colours
    if form == "json_object" and "ignores-json-object" in lies:
        return "Graz."
    if "never-the-same" in lies and asked == "Who are you?":
        return f"I am number {next(NUMBERS)}."
    return next((answer for start, answer in SCRIPT.items() if asked.startswith(start)), "I have nothing to say to that.")


def _limited(
    pieces: list[str], thoughts: list[str], calls: list[dict[str, Any]], body: dict[str, Any], prompt_tokens: int,
    lies: frozenset[str],
) -> Said:  # fmt: skip
    new = None if "ignores-new-limit" in lies else body.get("max_completion_tokens")
    limit = new or body.get("max_tokens") or 50
    limit = min(limit, 300) if "clamps" in lies else limit
    if "thoughts-in-text" in lies and thoughts:
        pieces, thoughts = ["<think>", *thoughts, "</think>", *pieces], []
    if "thinks-only" in lies and thoughts:
        pieces = []
    left = max(0, limit - len(thoughts))
    if "cuts-calls" in lies and calls:
        return Said([], [], calls, "length", prompt_tokens, body, lies)
    finish = "length" if len(pieces) + len(thoughts) > limit else "tool_calls" if calls else "stop"
    if ("calls-it-whole" in lies and limit == 3) or ("cut-thoughts-are-whole" in lies and len(thoughts) > limit):
        finish = "stop"
    return Said(pieces[:left], thoughts[:limit], calls, finish, prompt_tokens, body, lies)
