"""Played by the Python of tools/make-clients: what LiteLLM makes of the gateway, as one JSON object."""

from __future__ import annotations

import json
import sys
from typing import Any

import litellm

url, key = sys.argv[1:]
HELLO = [{"role": "user", "content": "Who are you?"}]
COMMON: dict[str, Any] = {"api_base": f"{url}/v1", "api_key": key, "num_retries": 0, "max_tokens": 16, "temperature": 0}


def refusal(**changes: Any) -> list[Any]:
    """Returns the status and the text of the exception that a request ends with."""
    try:
        litellm.completion(**{"model": "openai/stoker-demo", "messages": HELLO, **COMMON, **changes})
    except Exception as problem:  # noqa: BLE001 - what is raised is what is looked at
        return [getattr(problem, "status_code", None), str(problem)]
    return [None, "answered"]


whole = litellm.completion(model="openai/stoker-demo", messages=HELLO, **COMMON)
stream = litellm.completion(model="openai/stoker-demo", messages=HELLO, stream=True, **COMMON)
told = {
    "model": whole.model,
    "whole": whole.choices[0].message.content,
    "stream": "".join(chunk.choices[0].delta.content or "" for chunk in stream),
    "unknown": refusal(model="openai/gpt-4o"),
    "wrong key": refusal(api_key="sk-wrong"),
}
print(json.dumps(told))
