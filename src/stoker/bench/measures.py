"""Counts the tokens of prompts to be: as the server does where it can be asked, else by trial, else by a rule of thumb.

vLLM's `/tokenize` takes messages, llama.cpp applies its template and then tokenizes. Elsewhere the parts are tokenized, and
what the template adds is found by a trial. Each way is tried on a small conversation, and the first that is right is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from stoker.bench.prompts import BYTES_PER_TOKEN, Fitted, make_head, units_of
from stoker.bench.server import Server, count_at_server

Messages = Sequence[Mapping[str, Any]]
SAMPLE = (
    {"role": "user", "content": "The harbour master kept two ledgers."},
    {"role": "assistant", "content": "Which of them was the true one?"},
    {"role": "user", "content": "In the first he wrote what came in, 41 barrels of oil:\n\n- salt\n- rope"},
)
CountText = Callable[[str], int]


class Measure:
    """Tells how many tokens messages are; `is_cheap` where that takes the model no work, `is_exact` where the server tells.

    `fitted` are the last texts of each kind and length: where looking costs a trial, their lengths are used again.
    """

    def __init__(self, server: Server, tokenizer: CountText | None = None) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._added: dict[tuple[str, ...], int | None] = {}
        self._costs: dict[str, tuple[int, ...]] = {}
        self.fitted: dict[tuple[str, int], Fitted] = {}
        told = self._trial(SAMPLE)
        self.is_exact = told is not None
        ways = (self._by_messages, self._by_template) if server.tokenizes and tokenizer is None else ()
        self._whole = next((way for way in ways if told is not None and way(SAMPLE) == told), None)
        self.is_cheap = server.tokenizes or tokenizer is not None

    def text(self, text: str) -> int:
        """Returns how many tokens a text is by itself, cheaply; by the rule of thumb where nothing else tells."""
        if self._tokenizer is not None:
            return self._tokenizer(text)
        counted = count_at_server(self._server.root, self._server.target.model, text) if self._server.tokenizes else None
        return len(text.encode()) // BYTES_PER_TOKEN if counted is None else counted

    def count(self, messages: Messages) -> int:
        """Returns how many tokens messages are with all that the chat template adds."""
        if self._whole is not None and (counted := self._whole(messages)) is not None:
            return counted
        if not self.is_cheap and (told := self._trial(messages)) is not None:
            return told
        return sum(self.text(str(one["content"])) for one in messages) + self.added(messages)

    def added(self, messages: Messages) -> int:
        """Returns what the chat template adds to messages of this shape; 0 where nobody tells."""
        shape = tuple(str(one["role"]) for one in messages)
        if shape not in self._added:
            short = [{"role": role, "content": f"{role} says so."} for role in shape]
            told = self._trial(short) if self.is_cheap else None
            self._added[shape] = None if told is None else told - sum(self.text(one["content"]) for one in short)
        return self._added[shape] or 0

    def costs(self, content: str) -> tuple[int, ...]:
        """Returns the tokens of each part of a content; nothing where counting is no cheap matter."""
        if content not in self._costs:
            units = units_of(content) if self.is_cheap else ()
            self._costs[content] = tuple(self.text(f"\n\n{unit}") for unit in units)
        return self._costs[content]

    def least_tokens(self) -> int:
        """Returns the shortest prompt that can be made: the template's tokens, a head unlike all others, and a word."""
        return self.count([{"role": "user", "content": make_head(Random(0)) + "word"}])

    # The ways to count.

    def _by_messages(self, messages: Messages) -> int | None:
        body = {"model": self._server.target.model, "messages": messages, "add_generation_prompt": True}
        return _length(self._server.root.read_json("POST", "/tokenize", body))

    def _by_template(self, messages: Messages) -> int | None:
        said = self._server.engine_asker.read_json("POST", "/apply-template", {"messages": messages})
        prompt = said.get("prompt") if isinstance(said, dict) else None
        if not isinstance(prompt, str):
            return None
        body = {"model": self._server.target.model, "content": prompt, "add_special": True, "parse_special": True}
        return _length(self._server.root.read_json("POST", "/tokenize", body))

    def _trial(self, messages: Messages) -> int | None:
        body = {"model": self._server.target.model, "messages": messages, "max_tokens": 1}
        said = self._server.chat.read_json("POST", "/chat/completions", body)
        usage = said.get("usage") if isinstance(said, dict) else None
        told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return told if isinstance(told, int) and told > 0 else None


def _length(said: Any) -> int | None:
    tokens = said.get("tokens") if isinstance(said, dict) else None
    return len(tokens) if isinstance(tokens, list) and tokens else None
