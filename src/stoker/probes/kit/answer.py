"""Reads what an endpoint answered to a chat, whole or as a stream; anything else is Trouble, in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from stoker.probes.kit.events import Event
from stoker.probes.kit.findings import Trouble
from stoker.probes.kit.reply import read_json
from stoker.probes.kit.wire import Reply


class Function(msgspec.Struct):
    """What a tool call calls."""

    name: str | None = None
    arguments: str | None = None


class ToolCall(msgspec.Struct):
    """A call of a tool, or the part of one that a delta brings."""

    function: Function = msgspec.field(default_factory=Function)
    id: str | None = None
    index: int | None = None

    @property
    def name(self) -> str:
        """The tool's name, empty where none is told."""
        return self.function.name or ""

    @property
    def arguments(self) -> str:
        """The arguments as the model wrote them."""
        return self.function.arguments or ""


class Message(msgspec.Struct):
    """A message or a delta; the train of thought comes under one of two names."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None

    @property
    def says(self) -> bool:
        """Tells whether it carries anything of an answer."""
        return bool(self.content or self.reasoning_content or self.reasoning or self.tool_calls)


class Choice(msgspec.Struct):
    """One of the answers, or an event of one."""

    index: int = 0
    message: Message | None = None
    delta: Message | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class Usage(msgspec.Struct):
    """What was counted."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    completion_tokens_details: dict[str, Any] | None = None
    reasoning_tokens: int | None = None  # SGLang's place for it


class Completion(msgspec.Struct):
    """A chat completion, or an event of one."""

    id: str | None = None
    model: str | None = None
    choices: list[Choice] = []
    usage: Usage | None = None
    system_fingerprint: str | None = None


class Answer(NamedTuple):
    """The first choice of a completion, as a client makes it of a whole reply or of a stream."""

    message: Message
    finish: str | None
    completion: Completion
    reply: Reply

    @property
    def text(self) -> str:
        """What was said."""
        return self.message.content or ""

    @property
    def thought(self) -> str:
        """What was thought, where that came apart from what was said."""
        return self.message.reasoning_content or self.message.reasoning or ""

    @property
    def calls(self) -> list[ToolCall]:
        """The tools that are to be called."""
        return self.message.tool_calls or []

    @property
    def is_thought_alone(self) -> bool:
        """Tells whether thinking took all tokens, so that nothing is known of the answer."""
        return bool(self.thought) and self.finish == "length" and not self.text and not self.calls

    @property
    def tokens(self) -> int | None:
        """How many tokens were generated, by its own count."""
        return self.completion.usage.completion_tokens if self.completion.usage else None


def read_answer(reply: Reply) -> Answer:
    """Returns a whole answer to a chat; raises Trouble, or Declined where it is an error."""
    completion = _convert(read_json(reply), "its answer is no chat completion")
    if not completion.choices or (message := completion.choices[0].message) is None:
        raise Trouble("its answer is no chat completion: it has no choice with a message")
    return Answer(message, completion.choices[0].finish_reason, completion, reply)


def read_chunks(events: list[Event]) -> list[Completion]:
    """Returns the events of a chat; raises Trouble where one is something else."""
    return [_convert(event.data, "an event of its stream is none of a chat") for event in events if event.data is not None]


def _convert(body: dict[str, Any], wrong: str) -> Completion:
    try:
        return msgspec.convert(body, Completion)
    except msgspec.ValidationError as problem:
        raise Trouble(f"{wrong}: {problem}") from problem


def join_chunks(chunks: list[Completion], reply: Reply) -> Answer:
    """Returns a stream as the whole answer that a client makes of it; raises Trouble where it is empty."""
    if not chunks:
        raise Trouble("its stream held no event")
    whole, finish, calls = Message(), None, dict[int, ToolCall]()
    for choice in (choice for chunk in chunks for choice in chunk.choices if choice.index == 0):
        finish = choice.finish_reason or finish
        if choice.delta is not None:
            _add(whole, calls, choice.delta)
    whole.tool_calls = [calls[number] for number in sorted(calls)]
    usage = next((chunk.usage for chunk in reversed(chunks) if chunk.usage), None)
    return Answer(whole, finish, msgspec.structs.replace(chunks[0], usage=usage), reply)


def _add(whole: Message, calls: dict[int, ToolCall], delta: Message) -> None:
    for name in ("content", "reasoning_content", "reasoning"):
        if more := getattr(delta, name):
            setattr(whole, name, (getattr(whole, name) or "") + more)
    for part in delta.tool_calls or ():
        call = calls.setdefault(part.index or 0, ToolCall())
        call.id = part.id or call.id
        call.function.name = call.name + part.name or None
        call.function.arguments = call.arguments + part.arguments
