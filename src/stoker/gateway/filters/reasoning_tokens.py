"""Fills in how many tokens the thinking took, where an engine says none although it sent thinking."""

from __future__ import annotations

from typing import Any

from stoker.gateway.filters import CHAT, Filter, ReplyPart, messages_of

KEPT_BYTES = 512 * 1024  # of thinking in one reply; longer thinking is not counted


class _Count:
    cues: tuple[bytes, ...] = (b'"reasoning', b'"usage"')

    def __init__(self) -> None:
        self._texts: dict[int, bytearray] = {}  # by choice; not lists of pieces, which take 50 bytes a token
        self._kept_bytes = 0

    def read(self, body: dict[str, Any]) -> tuple[str, ...]:
        """Keeps the thinking; asks for its tokens once a body tells the usage of the whole reply."""
        for index, message in messages_of(body):
            self._keep(index, message.get("reasoning_content") or message.get("reasoning"))
        usage = body.get("usage")
        if not _is_last(body) or not _lacks_count(usage) or _said_elsewhere(usage):
            return ()
        return tuple(text.decode() for text in self._texts.values())

    def _keep(self, index: int, said: object) -> None:
        if not isinstance(said, str):
            return
        text = said.encode()
        self._kept_bytes += len(text)
        if self._kept_bytes > KEPT_BYTES:
            self._texts.clear()
        elif text:
            self._texts.setdefault(index, bytearray()).extend(text)

    def change(self, body: dict[str, Any], tokens: int | None) -> bool:
        """Sets the count where one is known; thinking cannot have taken more than the whole reply."""
        usage = body.get("usage")
        count = _said_elsewhere(usage) or tokens
        if count is None or not isinstance(usage, dict) or not _lacks_count(usage):
            return False
        whole = usage.get("completion_tokens")
        count = min(count, whole) if isinstance(whole, int) else count
        usage["completion_tokens_details"] = {**(usage.get("completion_tokens_details") or {}), "reasoning_tokens": count}
        return True


def _is_last(body: dict[str, Any]) -> bool:
    """Tells whether the usage is the whole reply's: vLLM can be asked to tell it with every token."""
    choices = body.get("choices")
    listed = choices if isinstance(choices, list) else []
    return all(isinstance(choice, dict) and choice.get("finish_reason") is not None for choice in listed)


def _lacks_count(usage: object) -> bool:
    if not isinstance(usage, dict):
        return False
    details = usage.get("completion_tokens_details")
    return details is None or (isinstance(details, dict) and not details.get("reasoning_tokens"))


def _said_elsewhere(usage: object) -> int | None:
    """Returns the count from the place where SGLang puts it, where there is one."""
    count = usage.get("reasoning_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count > 0 else None


def _make(_: str) -> ReplyPart:
    return _Count()


FILTER = Filter(
    name="reasoning-tokens",
    summary="Fills in usage.completion_tokens_details.reasoning_tokens where the engine sent thinking and reports none.",
    why="Some builds report 0, others leave it out. The text of the thinking is counted by the engine's own tokenizer "
    "(`/tokenize`) before the usage is passed on; where that gives no number, the reply stays as it came.",
    paths=frozenset({CHAT}),
    rules=("sglang-reasoning-tokens-zero",),
    reply=_make,
)
