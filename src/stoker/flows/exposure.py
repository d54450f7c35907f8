"""Refuses to let other machines in where nothing keeps them out."""

from __future__ import annotations

from pathlib import Path

from stoker.errors import Refused
from stoker.gateway.hosts import is_loopback

SHORTEST_KEY = 20  # of a generated key's 53 letters


def check_exposure(host: str, keys: dict[Path, str]) -> None:
    """Raises Refused where the gateway would listen for other machines with a key that can be guessed."""
    weak = [file for file, key in keys.items() if len(key) < SHORTEST_KEY]
    if weak and not is_loopback(host):
        raise Refused(
            f"the gateway does not listen on {host} with the key in {weak[0]}",
            why=f"other machines reach that address, and a key of under {SHORTEST_KEY} letters can be guessed",
            next_step="delete that file, so that a key is generated, or set gateway.host to 127.0.0.1",
        )
