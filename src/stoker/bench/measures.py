"""Counts the tokens of prompts to be: by the server's `/tokenize`, by trial requests, or by a rule of thumb."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from stoker.bench.prompts import Fitted, make_head
from stoker.bench.server import Server, count_at_server

Messages = Sequence[Mapping[str, Any]]
BYTES_PER_TOKEN = 4  # of English text with the vocabularies in use; only where nothing else tells, and then it is said
CountText = Callable[[str], int]


class Measure:
    """Tells how many tokens messages are; `is_cheap` where that takes the model no work, `is_exact` where the server tells.

    `fitted` are the last texts of each kind and length: where looking costs a trial, their lengths are used again.
    With `/tokenize` or a tokenizer of the user's, what the chat template adds is measured by a trial request for each shape.
    """

    def __init__(self, server: Server, tokenizer: CountText | None = None) -> None:
        self._server = server
        self._tokenizer = tokenizer
        self._added: dict[tuple[str, ...], int | None] = {}
        self.fitted: dict[tuple[str, int], Fitted] = {}
        self.is_cheap = server.tokenizes or tokenizer is not None
        self.is_exact = self._trial([{"role": "user", "content": "one two"}]) is not None

    @property
    def source(self) -> str:
        """Says what it rests on."""
        if not self.is_exact and not self.is_cheap:
            return f"{BYTES_PER_TOKEN} bytes a token, since nothing counts them"
        return "its /tokenize" if self._server.tokenizes else "a tokenizer" if self._tokenizer else "usage of trial requests"

    def text(self, text: str) -> int:
        """Returns how many tokens a text is by itself, cheaply; by the rule of thumb where nothing else tells."""
        if self._tokenizer is not None:
            return self._tokenizer(text)
        counted = count_at_server(self._server.root, self._server.target.model, text) if self._server.tokenizes else None
        return len(text.encode()) // BYTES_PER_TOKEN if counted is None else counted

    def count(self, messages: Messages) -> int:
        """Returns how many tokens messages are with all that the chat template adds."""
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

    def least_tokens(self) -> int:
        """Returns the shortest prompt that can be made: the template's tokens, a head unlike all others, and a word."""
        return self.count([{"role": "user", "content": make_head(Random(0)) + "word"}])

    def correct(self, messages: Messages, more: int) -> None:
        """Takes to heart that messages of this shape turned out to be so many tokens more."""
        shape = tuple(str(one["role"]) for one in messages)
        self._added[shape] = (self._added.get(shape) or 0) + more

    def _trial(self, messages: Messages) -> int | None:
        body = {"model": self._server.target.model, "messages": messages, "max_tokens": 1}
        said = self._server.chat.read_json("POST", "/chat/completions", body)
        usage = said.get("usage") if isinstance(said, dict) else None
        told = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return told if isinstance(told, int) and told > 0 else None
