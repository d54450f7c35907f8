"""Says who asks: the owner, the control API's user, or the holder of a named key; decided from headers, without waiting."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

from stoker.gateway.attempts import Attempts
from stoker.gateway.bucket import Bucket
from stoker.records import NamedKey

OWNER, CONTROL, DASHBOARD = "owner", "control", "dashboard"
MINUTE_S = 60.0
KEY_LIMIT_BYTES = 512  # hashing a megabyte for everybody who sends one is work that nobody asked for
MODEL_SHOWN = 200
Place = Literal["models", "metrics", "control"]
Headers = Iterable[tuple[bytes, bytes]]
OPENED_BY: Mapping[Place, str] = {
    "models": "Models are asked with the owner's key (gateway.key) or one of `stoker keys add`.",
    "metrics": "Metrics are read with one of `stoker keys add --metrics`, the owner's key or the control API's.",
    "control": "Models are at /v1; this one is the control API's, which has a key of its own (control.key).",
}
SEE_KEY = "Send `Authorization: Bearer KEY` or `x-api-key: KEY`; `stoker status` names the owner's key file."


class Caller(NamedTuple):
    """Who asks. `models` None: all; `rpm` and `running` (of each service) None: no limit; a higher priority goes first."""

    name: str
    models: frozenset[str] | None = None
    rpm: int | None = None
    running: int | None = None
    priority: int = 0

    def may_ask(self, model: str) -> bool:
        """Tells whether a model is within the key's scope."""
        return self.models is None or model in self.models


class Denial(NamedTuple):
    """Why somebody is not let in, or a reply ends before its time, as OpenAI's clients understand it."""

    status: int
    code: str
    message: str
    kind: str = "authentication_error"
    retry_after_s: int | None = None


def out_of_scope(caller: Caller, model: str) -> Denial:
    """Returns the refusal of a model that is outside a key's scope, which does not tell whether there is such a model."""
    known = ", ".join(f"`{name}`" for name in sorted(caller.models or ()))
    message = f"The key `{caller.name}` may not ask `{model[:MODEL_SHOWN]}`. Models of this key: {known}."
    return Denial(403, "model_not_allowed", message, "permission_error")


def out_of_paths(caller: Caller, path: str) -> Denial:
    """Returns the refusal of a path of an engine's own, which may change what the engine is."""
    message = f"The key `{caller.name}` does not open {path[:MODEL_SHOWN]} of a service; the owner's key does."
    return Denial(403, "path_not_allowed", message, "permission_error")


class _Held(NamedTuple):
    caller: Caller
    places: frozenset[Place]
    expires: float | None = None
    revoked: float | None = None
    bucket: Bucket | None = None


class Keyring:
    """Knows all keys by their digests. `clock` is monotonic, `wall` counts seconds since the epoch."""

    def __init__(
        self, owner_key: str, control_key: str,
        clock: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._wall = wall
        self._own = (
            (_digest(owner_key.encode()), _Held(Caller(OWNER), frozenset({"models", "metrics"}))),
            (_digest(control_key.encode()), _Held(Caller(CONTROL), frozenset({"control", "metrics"}))),
        )
        self._named: dict[bytes, _Held] = {}
        self._attempts = Attempts(clock)

    def load(self, keys: Iterable[NamedKey]) -> None:
        """Knows these named keys and no others from now on; what a key has used of its rate stays."""
        self._named = {bytes.fromhex(key.digest): self._hold(key) for key in keys}

    def revoke(self, name: str, at: float) -> None:
        """Lets a named key in no more."""
        for digest, held in self._named.items():
            if held.caller.name == name and held.revoked is None:
                self._named[digest] = held._replace(revoked=at)

    def names(self) -> frozenset[str]:
        """Returns the names of the named keys, revoked ones included."""
        return frozenset(held.caller.name for held in self._named.values())

    def _hold(self, key: NamedKey) -> _Held:
        models = None if key.models is None else frozenset(key.models)
        caller = Caller(key.name, models, key.rpm, key.running, key.priority)
        before = self._named.get(bytes.fromhex(key.digest))
        bucket = before.bucket if before else Bucket(key.rpm, MINUTE_S) if key.rpm else None
        places: frozenset[Place] = frozenset({"metrics" if key.metrics else "models"})
        return _Held(caller, places, key.expires, key.revoked, bucket)

    def who(self, headers: Headers, peer: str = "", place: Place = "models") -> Caller | Denial:
        """Returns who asks from the address `peer` for what lies at `place`, or why that is refused."""
        shown = _shown(headers)
        if not shown:
            return Denial(401, "invalid_api_key", f"There is no key in this request. {SEE_KEY}")
        digests = [_digest(key) for key in shown if len(key) <= KEY_LIMIT_BYTES]
        wait_s = self._attempts.wait_s(peer, digests)
        if wait_s:
            return _too_many_attempts(wait_s)
        found = None
        for digest in digests:
            found = found or self._find(digest)
        if found is None:
            wait_s = self._attempts.fail(peer)
            return _too_many_attempts(wait_s) if wait_s else Denial(401, "invalid_api_key", f"The key is wrong. {SEE_KEY}")
        self._attempts.succeed(peer, digests)
        return self._refusal(found, place) or found.caller

    def deny_stranger(self, headers: Headers, peer: str) -> Denial | None:
        """Returns why somebody without a good key is refused; for all others nothing is decided, nor counted, yet."""
        held = (self._find(_digest(key)) for key in _shown(headers) if len(key) <= KEY_LIMIT_BYTES)
        if any(one is not None and self._over(one) is None for one in held):
            return None
        who = self.who(headers, peer)
        return who if isinstance(who, Denial) else None

    def _find(self, digest: bytes) -> _Held | None:
        # What the time of this look-up tells is about a digest, from which no key can be made.
        found = self._named.get(digest)
        for good, held in self._own:  # always both, each in constant time
            if hmac.compare_digest(digest, good):
                found = held
        return found

    def _over(self, held: _Held) -> Denial | None:
        """Returns what a key is told that was good once."""
        if held.revoked is not None:
            return Denial(401, "revoked_api_key", f"The key `{held.caller.name}` was revoked.")
        if held.expires is not None and held.expires <= self._wall():
            return Denial(401, "expired_api_key", f"The key `{held.caller.name}` has expired.")
        return None

    def _refusal(self, held: _Held, place: Place) -> Denial | None:
        if over := self._over(held):
            return over
        name = held.caller.name
        if place not in held.places:
            return Denial(
                401, "invalid_api_key", f"The key `{name}` is good, but does not open this path. {OPENED_BY[place]}"
            )
        if held.bucket is not None and place == "models":
            wait_s = held.bucket.take(self._clock())
            return _over_rate(held.caller, wait_s) if wait_s else None
        return None


def _digest(key: bytes) -> bytes:
    return sha256(key).digest()


def _shown(headers: Headers) -> list[bytes]:
    """Returns the keys in a request: a bearer's, and that of Anthropic's clients; some send both, one of them real."""
    shown: dict[bytes, bytes] = {}
    for name, value in headers:
        if name == b"authorization":
            scheme, _, key = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                shown.setdefault(name, key.strip())
        elif name == b"x-api-key":
            shown.setdefault(name, value.strip())
    return [key for key in shown.values() if key]


def _too_many_attempts(wait_s: float) -> Denial:
    seconds = math.ceil(wait_s)
    message = f"Too many wrong keys came from this address; try again in {seconds} s."
    return Denial(429, "too_many_wrong_keys", message, "rate_limit_error", seconds)


def _over_rate(caller: Caller, wait_s: float) -> Denial:
    seconds = math.ceil(wait_s)
    message = f"The key `{caller.name}` may make {caller.rpm} requests a minute; the next one in {seconds} s."
    return Denial(429, "rate_limit_exceeded", message, "rate_limit_error", seconds)
