"""Tells secrets from settings, so that none is copied into a file or onto a terminal."""

from __future__ import annotations

import re

HIDDEN = "***"
VARIABLE = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY)$|API_?KEY|CREDENTIAL", re.IGNORECASE)
FLAG = re.compile(r"(?:^|-)(?:api-key|token|password|secret)$", re.IGNORECASE)
NOT_SECRET = frozenset({"--image-token", "--stop-token", "--pad-token"})
# The forms that giving services print into their tokens; these are secrets whatever the name beside them.
TOKEN = re.compile(r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,})")
LEAST_LENGTH = 4  # a shorter one would blot out half of every sentence


def is_secret_variable(name: str, value: str) -> bool:
    """Tells whether an environment variable holds a secret, by its name or the form of its value."""
    return bool(VARIABLE.search(name) or TOKEN.search(value))


def is_secret_flag(name: str, values: tuple[str, ...]) -> bool:
    """Tells whether an engine's flag hands over a secret."""
    named = name not in NOT_SECRET and FLAG.search(name) is not None
    return named or any(TOKEN.search(value) for value in values)


def hide(sentence: str, secrets: frozenset[str]) -> str:
    """Returns a sentence without the secrets that may have been quoted in it."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        if len(secret) >= LEAST_LENGTH and not secret.startswith("$"):
            sentence = sentence.replace(secret, HIDDEN)
    return TOKEN.sub(HIDDEN, sentence)
