"""curl, in a script or typed in."""

from __future__ import annotations

import json
import re

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import find_assigned, find_pattern, join_uses
from stoker.records import ClientSetting, ClientUse, Written

URL = re.compile(r"(https?://[^\s\"'\\|;)]+)")
KEY = re.compile(r"(?:[Bb]earer|x-api-key:)\s+([^\s\"'\\]+)")
ENDPOINT = re.compile(r"/(?:chat/completions|completions|embeddings|responses|messages|models(?:/.*)?|rerank|score)/?$")


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the addresses, without what of an API is asked there, with keys and models."""
    urls = [Written(ENDPOINT.sub("", one.value), one.path, one.line) for one in find_pattern(text, URL, "address")]
    return join_uses(urls, find_pattern(text, KEY, "authorization"), find_assigned(text.replace('\\"', '"'), ["model"]))


def render(needs: Needs) -> Rendered:
    """Returns one command; the key reaches curl over its standard input."""
    body = json.dumps({"model": needs.model, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 64})
    text = (
        f'printf \'header = "authorization: Bearer %s"\' "$(cat {needs.key_file})" |\n'
        f"  curl -sS -K - {needs.url}/chat/completions -H 'content-type: application/json' \\\n    -d '{body}'\n"
    )
    settings = (
        ClientSetting(
            "-K -", "", "a key in curl's own words (-H) is seen by everybody on this machine who looks at the processes"
        ),
        ClientSetting("-N", "", 'add it to a request with "stream": true, so that curl prints each piece as it comes'),
    )
    return Rendered("your shell", text, settings)


CLIENT = Client("curl", "curl", read, render)
