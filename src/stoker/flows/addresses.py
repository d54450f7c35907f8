"""An address that a command asks, as the user names it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from stoker.errors import WrongUse
from stoker.records import Record, Target


class Address(Record, frozen=True):
    """An endpoint as the user names it; the keys are in files, since every user may read a command's words."""

    url: str | None
    model: str | None
    key_file: Path | None = None
    engine_url: str | None = None
    engine_key_file: Path | None = None


def target_of(address: Address) -> Target:
    """Returns an address as a target; raises WrongUse where it is none."""
    if address.url is None or address.model is None:
        raise WrongUse("--url and --model belong together", next_step="GET /v1/models lists the names that a server knows")
    return Target(
        url=_api_url(address.url),
        model=address.model,
        key=read_key(address.key_file),
        engine_url=_api_url(address.engine_url).removesuffix("/v1") if address.engine_url else None,
        engine_key=read_key(address.engine_key_file),
    )


def _api_url(url: str) -> str:
    """Returns an address with `/v1` at its end, as clients are given it."""
    if "@" in url:  # before anything repeats it
        raise WrongUse(
            "the address names a user or a password", next_step="put the key into a file and name it with --key-file"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise WrongUse(f"`{url}` is no address", why=str(problem)) from problem
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise WrongUse(f"`{url}` is no address of an API", next_step="write it as http://HOST:PORT or https://HOST/v1")
    if parts.query or parts.fragment:
        raise WrongUse(
            "the address holds more than a place", next_step="put the key into a file and name it with --key-file"
        )
    plain = url.rstrip("/")
    return plain if plain.endswith("/v1") else f"{plain}/v1"


def read_key(file: Path | None) -> str | None:
    """Returns the key in a file; None without one. Raises WrongUse."""
    if file is None:
        return None
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise WrongUse(f"the key in {file} cannot be read", why=str(problem)) from problem
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise WrongUse(f"{file} holds no key", why="a key is one line of printable ASCII letters")
    return key
