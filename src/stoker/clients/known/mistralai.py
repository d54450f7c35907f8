"""Mistral's Python library, whose address is the server's own, without `/v1`."""

from __future__ import annotations

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import find_assigned, join_uses
from stoker.records import ClientSetting, ClientUse


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns what a program says."""
    keys = find_assigned(text, ["api_key", "MISTRAL_API_KEY"])
    return join_uses(find_assigned(text, ["server_url"]), keys, find_assigned(text, ["model"]))


def render(needs: Needs) -> Rendered:
    """Returns a program of five lines."""
    text = (
        "from pathlib import Path\n\nfrom mistralai.client import Mistral\n\n"
        f'key = Path("{needs.key_file}").read_text().strip()\n'
        f'with Mistral(api_key=key, server_url="{needs.root}") as client:\n'
        f'    answer = client.chat.complete(model="{needs.model}", '
        'messages=[{"role": "user", "content": "Say hello."}])\n'
        "    print(answer.choices[0].message.content)\n"
    )
    settings = (
        ClientSetting("server_url", needs.root, "without /v1: the library's own paths begin with it"),
        ClientSetting("retries", "none", "as the library does by itself; one engine is asked once"),
        ClientSetting("reasoning_effort", "high or none", "Mistral Small 4 knows no other value; SGLang passes over the "
                      "rest in silence (mistral4-reasoning-effort-high-none)"),
    )  # fmt: skip
    return Rendered("your program", text, settings)


CLIENT = Client("mistralai", "Mistral's Python library", read, render)
