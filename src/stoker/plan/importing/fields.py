"""Turns an engine's flags into the fields of a service, as far as these mean the same; the rest stay flags."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from stoker.engines import find
from stoker.plan.importing.toml import Value
from stoker.plan.written.words import spans_of
from stoker.records import Catalog, SettingValue

Flags = dict[str, tuple[str, ...]]
MOST = 2**31 - 1
METHODS = {"mtp": "mtp", "eagle": "eagle", "eagle3": "eagle3", "draft_model": "draft"}
MODEL_FLAGS = ("--model", "--model-path", "--hf-repo")
PORT = {"port": ("--port",)}
# Where an engine is used through its own words alone, the names that it took over the years.
LLAMACPP = {"gpu_layers": ("--n-gpu-layers", "--gpu-layers"), "threads": ("--threads",)}
DRAFT_FLAGS = ("--spec-draft-model", "--model-draft")
DRAFT_TOKENS_FLAGS = ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft")


def whole(least: int, most: int = MOST) -> Callable[[str], int | None]:
    """Returns a reader of whole numbers within limits."""

    def read(text: str) -> int | None:
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdecimal() and len(text) < 12 else None
        return value if value is not None and least <= value <= most else None

    return read


def share(text: str) -> float | None:
    """Reads a part of the memory; beyond the limits of `memory_share` it stays a flag."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.01 <= value <= 1 else None


READERS: dict[str, Callable[[str], Value | None]] = {
    "port": whole(1, 65535), "context": whole(64), "parallel": whole(1), "memory_share": share,
    "gpu_layers": whole(-1, 100_000), "threads": whole(1, 1024),
}  # fmt: skip


def read_flags(words: Sequence[str], catalog: Catalog | None) -> Flags:
    """Returns the flags by their long names; of a flag given twice the later counts, as for the engine.

    A long name stays as it was written, since an older engine knows no newer one. `--flag.key value` becomes what the
    engine makes of it, one JSON text for the flag.
    """
    found: Flags = {}
    objects: dict[str, dict[str, object]] = {}
    for span in spans_of(words, catalog):
        written = words[span.start].partition("=")[0]
        flag, dot, key = (written if written.startswith("--") else span.name).partition(".")
        flag = flag.replace("_", "-")
        if dot:
            objects.setdefault(flag, {})[key] = _json_of(span.values)
        else:
            found[flag] = span.values
    return found | {flag: (json.dumps(keys, separators=(",", ":")),) for flag, keys in objects.items() if flag not in found}


def _json_of(values: tuple[str, ...]) -> object:
    text = " ".join(values)
    try:
        return json.loads(text) if values else True
    except (ValueError, RecursionError):
        return text


def last_value(flags: Flags, flag: str) -> str:
    """Returns the last value of a flag, or an empty text where it has none or is not there."""
    return (flags.get(flag) or ("",))[-1]


def take_fields(flags: Flags, engine: str) -> dict[str, Value]:
    """Takes out of the flags what a service has fields for, and returns these."""
    spelling = {name: flags_of_it for name, flags_of_it in find(engine).spelling.items() if name in READERS}
    spelled = PORT | spelling | (LLAMACPP if engine == "llamacpp" else {})
    found: dict[str, Value] = {}
    for name, spellings in spelled.items():
        for flag in spellings:
            value = READERS[name](last_value(flags, flag))
            if value is not None:
                found[name] = value
                del flags[flag]
    return found


def take_speculation(flags: Flags, engine: str) -> dict[str, Value]:
    """Takes speculative decoding out of the flags where fields can say all of it; else it stays there.

    It is always said: `auto` would add drafting of its own to what somebody wrote down.
    """
    if engine == "llamacpp":
        return _take_draft_model(flags)
    found = _speculation(last_value(flags, "--speculative-config")) if engine == "vllm" else None
    if found is None:
        return {"speculation": "off"}
    del flags["--speculative-config"]
    return found


def _take_draft_model(flags: Flags) -> dict[str, Value]:
    draft_flag = next((flag for flag in DRAFT_FLAGS if last_value(flags, flag)), None)
    if draft_flag is None or last_value(flags, "--spec-type") not in ("", "draft-simple"):
        return {"speculation": "off"}
    found: dict[str, Value] = {"speculation": "draft", "draft": last_value(flags, draft_flag)}
    del flags[draft_flag]
    flags.pop("--spec-type", None)
    for flag in DRAFT_TOKENS_FLAGS:
        tokens = whole(1, 64)(last_value(flags, flag))
        if tokens is not None:
            found["draft_tokens"] = tokens
            del flags[flag]
    return found


def _speculation(config: str) -> dict[str, Value] | None:
    """Returns vLLM's JSON as fields, or None where it says more than they can."""
    try:
        tree = json.loads(config)
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, dict) or not tree.keys() <= {"method", "model", "num_speculative_tokens"}:
        return None
    kind, draft, tokens = METHODS.get(str(tree.get("method"))), tree.get("model"), tree.get("num_speculative_tokens")
    has_draft = isinstance(draft, str) and bool(draft)
    if kind is None or type(tokens) is not int or not 1 <= tokens <= 64 or has_draft == (kind == "mtp"):
        return None
    return {"speculation": kind, **({"draft": str(draft)} if has_draft else {}), "draft_tokens": tokens}


def as_value(values: tuple[str, ...]) -> Value:
    """Returns what a flag was given: True for a switch, a number, a text, or a list of these."""
    if not values:
        return True
    found = tuple(_scalar(value) for value in values)
    return found if len(found) > 1 else found[0]


def _scalar(text: str) -> SettingValue:
    value = number(text)
    return text if value is None else value


def number(text: str) -> int | float | None:
    """Returns the number that a text is, only where it would be printed the same again: 0.80 and 1e3 stay texts."""
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        if len(text) < 18 and str(value) == text and math.isfinite(value):
            return value
    return None
