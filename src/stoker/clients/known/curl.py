"""curl, in a script or typed in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import code_lines, find_assigned, find_pattern, join_uses
from stoker.records import ClientSetting, ClientUse, Written

URL = re.compile(r"(https?://[^\s\"'\\|;)]+)")
KEY = re.compile(r"(?:[Bb]earer|x-api-key:)\s+([^\s\"'\\]+)")
QUERY = re.compile(r"[?#].*$")
ENDPOINT = re.compile(r"/(?:chat/completions|completions|embeddings|responses|messages|models(?:/.*)?|rerank|score)/?$")
BASE = re.compile(r"/v1/?$")
COMMAND = re.compile(r"\bcurl\b")


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the addresses where a model is asked, without what of an API is asked there, with their keys and models.

    Others, such as a health check's, are none of a client's settings.
    """
    urls = list(_addresses(text))
    keys = find_pattern(text, KEY, "authorization")
    models = find_assigned(text.replace('\\"', '"'), ["model"])
    lines = [one.line for one in urls]
    if len(set(lines)) < max(len(lines), 2):  # one command alone, or several on one line: their order has to do
        return join_uses(urls, keys, models)
    begins = [0, *_begins(text, lines)[1:]]
    ends = [*begins[1:], len(text)]
    parts = zip(urls, begins, ends, strict=True)
    return tuple(ClientUse(url, _first(keys, begin, end), _first(models, begin, end)) for url, begin, end in parts)


def _addresses(text: str) -> Iterator[Written]:
    for one in find_pattern(text, URL, "address"):
        address = QUERY.sub("", one.value)
        if ENDPOINT.search(address) or BASE.search(address):
            yield Written(ENDPOINT.sub("", address), one.path, one.line)


def _begins(text: str, lines: list[int]) -> list[int]:
    """Returns the line on which each address's command begins."""
    commands = [number for number, line in code_lines(text) if COMMAND.search(line)]
    return [max((one for one in commands if one <= line), default=line) for line in lines]


def _first(found: list[Written], begin: int, end: int) -> Written | None:
    return next((one for one in found if begin <= one.line < end), None)


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
