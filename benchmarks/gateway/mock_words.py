"""What the mock engine says: OpenAI's chat completions, made by putting bytes together, since that is quick."""

from __future__ import annotations

import json

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
CREATED_S = 1_700_000_000
PROMPT_TOKENS = 8
DONE = b"data: [DONE]\n\n"


def framed(data: bytes) -> bytes:
    """Returns the data as one chunk of HTTP/1.1."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def stamp(number: int, received_ns: int, sent_ns: int) -> bytes:
    """Returns what stands in each chunk: its number, when its request had arrived, and when it was written."""
    return b"#%06d:%019d:%019d;" % (number, received_ns, sent_ns)


class Words:
    """The words of one engine; its name and its model's stand in everything it says."""

    def __init__(self, name: str, model: str) -> None:
        self._name = name
        self._model = model
        self._middle = self._chunk_head() + b'"choices":[{"index":0,"delta":{"content":"'
        self._first = self._middle.replace(b'"content"', b'"role":"assistant","content"')
        self._last = self._chunk_head() + b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'

    def _chunk_head(self) -> bytes:
        text = '"id":"chatcmpl-%s","object":"chat.completion.chunk","created":%d,"model":"%s",'
        return b"data: {" + (text % (self._name, CREATED_S, self._model)).encode()

    def chunk(self, number: int, received_ns: int, sent_ns: int, pad: bytes) -> bytes:
        """Returns one stamped event."""
        head = self._middle if number else self._first
        return b'%b%b%b"},"finish_reason":null}]}\n\n' % (head, stamp(number, received_ns, sent_ns), pad)

    def tail(self, usage_tokens: int | None) -> bytes:
        """Returns the events that end a stream, without [DONE]; with usage where tokens are given."""
        if usage_tokens is None:
            return self._last
        usage = json.dumps(_usage(usage_tokens), separators=(",", ":")).encode()
        return self._last + self._chunk_head() + b'"choices":[],"usage":' + usage + b"}\n\n"

    def whole(self, text: str, tokens: int) -> dict[str, object]:
        """Returns a reply that is not streamed."""
        message = {"role": "assistant", "content": text}
        return {
            "id": f"chatcmpl-{self._name}", "object": "chat.completion", "created": CREATED_S, "model": self._model,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": _usage(tokens),
        }  # fmt: skip

    def models(self) -> dict[str, object]:
        """Returns the list of models, which is one."""
        model = {"id": self._model, "object": "model", "created": CREATED_S, "owned_by": "mock"}
        return {"object": "list", "data": [model]}


def failure(message: str, kind: str, code: str | None = None) -> dict[str, object]:
    """Returns an error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": "messages" if code else None, "code": code}}


def checksum_event(checksum: int) -> bytes:
    """Returns the event that tells the CRC-32 of all bytes before it."""
    return b'data: {"choices":[],"crc32":"%08x"}\n\n' % checksum


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": tokens, "total_tokens": PROMPT_TOKENS + tokens}
