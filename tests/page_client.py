"""Asks as a browser with the dashboard open does: with its cookie, its word and its origin."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple

from home import Home


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return str(self.json()["error"]["code"])


def send(home: Home, method: str, path: str, body: object = None, **headers: str) -> Answer:
    """Sends a request with these headers and no others; their names have underscores for dashes."""
    connection = http.client.HTTPConnection(home.daemon.url.removeprefix("http://"), timeout=60)
    said = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), said)
        reply = connection.getresponse()
        return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
    finally:
        connection.close()


class Browser:
    """A browser that somebody logged in with."""

    def __init__(self, home: Home, looks_on: bool = False) -> None:
        self.home = home
        key = home.paths.control_key_file.read_text().strip()
        query = "?looks-on" if looks_on else ""
        self.told = send(home, "POST", f"/page/session{query}", authorization=f"Bearer {key}", origin=home.daemon.url)
        assert self.told.status == 200, self.told
        self.cookie = self.told.headers["set-cookie"].partition(";")[0]
        self.word = str(self.told.json()["word"])

    def send(self, method: str, path: str, body: object = None, **other: str) -> Answer:
        """Sends a request as the page does, but for the headers given; an empty one is left out."""
        usual = {
            "cookie": self.cookie,
            "origin": self.home.daemon.url,
            "x_stoker_word": self.word,
            "sec_fetch_site": "same-origin",
        }
        return send(self.home, method, path, body, **{name: value for name, value in {**usual, **other}.items() if value})
