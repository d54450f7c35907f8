"""What the engine of the tests says to a chat: a script of words, bent by the lies that it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

CONTEXT_TOKENS = 2048
SCRIPT = {
    "Who are you?": "I am the honest engine of a test, and I say the same each time.",
    "Say hello": "Hello there, how are you today?",
    "Count from 1": ", ".join(map(str, range(1, 1000))),
}


class Refusal(Exception):
    """The engine refuses a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Said(NamedTuple):
    """What it says to one request: the pieces of each choice, with why it ended."""

    pieces: list[str]
    finish: str
    logprobs: bool
    lies: frozenset[str]

    @property
    def tokens(self) -> int:
        """How many tokens that are."""
        return len(self.pieces)

    def usage(self) -> dict[str, int]:
        """What is counted."""
        return {"prompt_tokens": 9, "completion_tokens": self.tokens, "total_tokens": 9 + self.tokens}

    def whole(self, model: str) -> dict[str, Any]:
        """The answer in one piece."""
        text = "" if "says-nothing" in self.lies else "".join(self.pieces)
        choice: dict[str, Any] = {
            "index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": self.finish
        }  # fmt: skip
        if self.logprobs:
            value = 0.7 if "logprobs-above-zero" in self.lies else float("nan") if "logprobs-nan" in self.lies else -0.5
            choice["logprobs"] = {"content": [{"token": piece, "logprob": value} for piece in self.pieces]}
        named = "another" if "says-another-model" in self.lies else model
        return {"id": "chat-1", "object": "chat.completion", "model": named, "choices": [choice], "usage": self.usage()}

    def events(self, model: str, body: dict[str, Any], lies: frozenset[str]) -> Iterator[dict[str, Any] | bytes]:
        """The answer as a stream."""
        yield self._event(model, {"role": "assistant", "content": ""}, None)
        for piece in self.pieces:
            yield self._event(model, {"content": piece}, None)
        yield self._event(model, {}, self.finish)
        if "speaks-after-the-end" in lies:
            yield self._event(model, {"content": "and"}, None)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield {**self._event(model, {}, None), "choices": [], "usage": self.usage()}
        if "no-done" not in lies:
            yield b"data: [DONE]\n\n"

    @staticmethod
    def _event(model: str, delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "chat-1", "object": "chat.completion.chunk", "model": model, "choices": [choice]}


def compose(path: str, body: dict[str, Any], model: str, lies: frozenset[str]) -> Said:
    """Returns what it says; raises Refusal."""
    if path != "/v1/chat/completions":
        raise Refusal(404, "there is no such path")
    if body["model"] != model and "any-name" not in lies:
        raise Refusal(404, f"there is no model {body['model']}")
    asked = body["messages"][-1]["content"]
    text = asked.partition(": ")[2] if asked.startswith("Repeat") else next(
        (answer for start, answer in SCRIPT.items() if asked.startswith(start)), "I have nothing to say to that."
    )  # fmt: skip
    pieces = [piece + " " for piece in text.split(" ")]
    if "never-the-same" in lies and asked == "Who are you?":
        _TURN.append(0)
        pieces = [f"{len(_TURN)} ", *pieces]
    limit = body.get("max_tokens") or CONTEXT_TOKENS
    finish = "length" if limit < len(pieces) else "stop"
    return Said(pieces[:limit], finish, bool(body.get("logprobs")), lies)


_TURN: list[int] = []
