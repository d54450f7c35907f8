"""Makes named keys, and shows them. A key is random and kept nowhere: what is stored is its SHA-256 digest."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from stoker.config import SERVICE_NAME
from stoker.errors import WrongUse
from stoker.gateway.keyring import CONTROL, DASHBOARD, OWNER
from stoker.records import KeyState, KeyView, KeyWish, NamedKey
from stoker.store.keys import read_keys

KEY_BYTES = 32
PREFIX = "sk-stoker-"
MODEL_LIMIT = 200


def make_secret() -> str:
    """Returns a new key: 256 random bits, with a prefix by which scanners for leaked keys know it."""
    return PREFIX + secrets.token_urlsafe(KEY_BYTES)


def make_key(wish: KeyWish, secret: str, now: float) -> NamedKey:
    """Returns what is stored of a key; raises WrongUse where the wish is off."""
    try:
        wish = msgspec.convert(msgspec.to_builtins(wish), KeyWish)
    except msgspec.ValidationError as problem:
        raise WrongUse("such a key cannot be made", why=str(problem)) from problem
    _check_name(wish.name)
    _check_models(wish.models)
    _check_metrics(wish)
    expires = None if wish.expires_s is None else now + wish.expires_s
    digest = sha256(secret.encode()).hexdigest()
    return NamedKey(
        wish.name, digest, now, wish.models, wish.rpm, wish.running, wish.priority, expires, metrics=wish.metrics
    )


def _check_name(name: str) -> None:
    if name in (OWNER, CONTROL, DASHBOARD):
        raise WrongUse(f"`{name}` is the name of a key that Stoker made for you", next_step="choose another name")
    if SERVICE_NAME.fullmatch(name) is None:
        raise WrongUse(
            f"`{name}` cannot be a key's name",
            next_step="use lower-case letters, digits, '.', '_' and '-', starting with a letter or digit",
        )


def _check_models(models: tuple[str, ...] | None) -> None:
    if models is not None and (
        not models or not all(0 < len(name) <= MODEL_LIMIT and name.isprintable() for name in models)
    ):
        raise WrongUse(
            "a key's models are names as clients ask for them, at least one", next_step="leave them out to allow all models"
        )


def _check_metrics(wish: KeyWish) -> None:
    if wish.metrics and wish != KeyWish(wish.name, expires_s=wish.expires_s, metrics=True):
        raise WrongUse(
            "a key for metrics asks no models, so it has neither models nor limits", next_step="leave those options out"
        )


def view_key(key: NamedKey, last_used: float | None, now: float) -> KeyView:
    """Returns a key as people see it; what another key of that name was used for is not this one's."""
    used = last_used if last_used is not None and last_used >= key.created else None
    return KeyView(
        key.name,
        _state(key, now),
        key.created,
        key.models,
        key.rpm,
        key.running,
        key.priority,
        key.expires,
        key.revoked,
        used,
        key.metrics,
    )


def _state(key: NamedKey, now: float) -> KeyState:
    if key.revoked is not None:
        return "revoked"
    return "expired" if key.expires is not None and key.expires <= now else "valid"


def read_views(file: Path, last_used: Mapping[str, float], now: float) -> tuple[KeyView, ...]:
    """Returns all keys of a database as people see them, by name."""
    return tuple(view_key(key, last_used.get(key.name), now) for key in read_keys(file))
