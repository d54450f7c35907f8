"""OpenAI's Python library, and whatever else reads `OPENAI_BASE_URL`."""

from __future__ import annotations

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import find_assigned, join_uses
from stoker.records import ClientSetting, ClientUse


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns what a program or an environment file says."""
    urls = find_assigned(text, ["base_url", "baseURL", "OPENAI_BASE_URL"])
    keys = find_assigned(text, ["api_key", "apiKey", "OPENAI_API_KEY"])
    return join_uses(urls, keys, find_assigned(text, ["model"]))


def render(needs: Needs) -> Rendered:
    """Returns a program of five lines."""
    text = (
        "from pathlib import Path\n\nfrom openai import OpenAI\n\n"
        f'key = Path("{needs.key_file}").read_text().strip()\n'
        f'client = OpenAI(base_url="{needs.url}", api_key=key, max_retries=0, timeout=900)\n'
        f'answer = client.chat.completions.create(model="{needs.model}", '
        'messages=[{"role": "user", "content": "Say hello."}])\n'
        "print(answer.choices[0].message.content)\n"
    )
    settings = (
        ClientSetting("base_url", needs.url, "with /v1: the library adds /chat/completions and the like to it"),
        ClientSetting("max_retries", "0", "two by itself: a slow request is sent again while the first still runs"),
        ClientSetting("timeout", "900", "600 s by itself; the gateway gives a silent engine up after 900 s"),
        ClientSetting("OPENAI_BASE_URL, OPENAI_API_KEY", "", "the same for programs whose text you cannot change"),
    )
    return Rendered("your program", text, settings)


CLIENT = Client("openai", "OpenAI's Python library", read, render)
