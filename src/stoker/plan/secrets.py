"""Tells secrets from settings, so that none is copied into a file or onto a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from stoker.records import Setting, SettingValue

HIDDEN = "***"
# At the end of a name: MAX_TOKENS and API_KEY_FILE hold no secret, HF_TOKEN and VLLM_API_KEY do.
VARIABLE = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|KEY)$|API_?KEY(?!_FILE)|CREDENTIAL", re.IGNORECASE)
ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
FLAG = re.compile(r"(?:^|-)(?:api-key|token|password|secret)$", re.IGNORECASE)
NOT_SECRET = frozenset({"--image-token", "--stop-token", "--pad-token"})
# The forms that giving services print into their tokens; these are secrets whatever the name beside them.
TOKEN = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|dckr_pat_[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
)
LEAST_LENGTH = 4  # a shorter one would blot out half of every sentence


def is_secret(name: str, value: SettingValue = "") -> bool:
    """Tells whether a setting, `--flag`, `$VARIABLE` or `VARIABLE`, holds a secret: by its name or the form of its value."""
    texts = tuple(map(str, value)) if isinstance(value, tuple) else (str(value),)
    if name.startswith("-"):
        return is_secret_flag(name, texts)
    return is_secret_variable(name.removeprefix("$"), " ".join(texts))


def without_secrets(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """Returns settings to show: a secret's value is hidden, its name and its reason stay."""
    return tuple(msgspec.structs.replace(one, value=HIDDEN) if is_secret(one.name, one.value) else one for one in settings)


def is_secret_variable(name: str, value: str) -> bool:
    """Tells whether an environment variable holds a secret, by its name or the form of its value."""
    return bool(VARIABLE.search(name) or TOKEN.search(value))


def is_secret_flag(name: str, values: tuple[str, ...]) -> bool:
    """Tells whether an engine's flag hands over a secret."""
    flag = name.replace("_", "-")
    named = flag not in NOT_SECRET and FLAG.search(flag) is not None
    return named or any(TOKEN.search(value) for value in values)


def secrets_in(words: Sequence[str], environment: Iterable[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Returns the names, never the values, of the secrets in a command's words and its environment."""
    found = [name for name, value in environment if is_secret_variable(name, value)]
    for word in words:
        flag, _, value = word.partition("=")
        assigned = ASSIGNED.fullmatch(word)
        if flag.startswith("-") and is_secret_flag(flag, (value,)):
            found.append(flag)
        elif assigned and is_secret_variable(assigned[1], assigned[2]):
            found.append(assigned[1])
        elif not flag.startswith("-") and TOKEN.search(word):
            found.append("a word in the form of a token")
    return tuple(dict.fromkeys(found))


def hide_words(words: Sequence[str]) -> tuple[str, ...]:
    """Returns a command's words to show, each secret among them hidden."""
    shown = list(words)
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and secrets_in((word,)):
            shown[place] = f"{name}={HIDDEN}"
        elif word.startswith("-") and is_secret_flag(word, ()) and place + 1 < len(words):
            shown[place + 1] = HIDDEN
        elif TOKEN.search(value or word):
            shown[place] = TOKEN.sub(HIDDEN, word)
    return tuple(shown)


def hide(sentence: str, secrets: frozenset[str]) -> str:
    """Returns a sentence without the secrets that may have been quoted in it."""
    for secret in sorted(secrets, key=len, reverse=True):  # one may hold another
        if len(secret) >= LEAST_LENGTH and not secret.startswith("$"):
            sentence = sentence.replace(secret, HIDDEN)
    return TOKEN.sub(HIDDEN, sentence)
