"""LiteLLM's proxy configuration: it starts nothing, and says which names lead to which engines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

from stoker.errors import StokerError
from stoker.plan.written.table import Table
from stoker.plan.written.tree import read_tree
from stoker.records import Recipe

LOCAL_PROVIDERS = ("hosted_vllm", "openai", "text-completion-openai", "openai_like", "custom_openai")
FALLBACKS = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a configuration of LiteLLM's proxy."""
    return isinstance(tree, dict) and ("model_list" in tree or {"litellm_settings", "router_settings"} <= tree.keys())


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns a launch without words for each model that LiteLLM expects on an address; raises StokerError for none."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    top.said += [*_fallback_faults(top), *_file_faults(top)]
    entries = top.tables("model_list")
    if not entries:
        said = "; ".join(top.said)
        raise StokerError(
            f"{name} lists no models", why=f"LiteLLM may keep them in its database{f'; {said}' if said else ''}"
        )
    found = []
    for place, entry in enumerate(entries):
        own = Table(entry.values, entry.path, top.said if place == 0 else [])
        found.append(_read_entry(own, name, tree.line(entry.where("model_name"))))
    return tuple(found)


def _read_entry(entry: Table, source: str, line: int) -> Recipe:
    entry.said += list(_entry_faults(entry))
    params = entry.table("litellm_params")
    provider, _, served = (params.text("model") or "").partition("/")
    base = params.text("api_base")
    target = f"LiteLLM only passes requests on, to {base or provider or 'nowhere'}: there is no launch in it"
    return Recipe(
        kind="recipe",
        name=entry.text("model_name"),
        engine="vllm" if provider == "hosted_vllm" else None,
        model=served or None,
        source=source,
        line=line,
        unknown=tuple(dict.fromkeys((target, *entry.said))),
    )


def _entry_faults(entry: Table) -> Iterator[str]:
    params = entry.table("litellm_params")
    model, base = params.text("model"), params.text("api_base")
    if entry.text("model_name") is None or model is None:
        yield f"`{entry.path}` needs both `model_name` and `litellm_params.model`"
    if "*" in (entry.text("model_name") or ""):
        yield "`*` in a name lets clients ask for any model there is, at your cost"
    if base and (model or "").partition("/")[0] in LOCAL_PROVIDERS and not _path(base).rstrip("/").endswith("/v1"):
        yield f"`api_base` is {base}; an engine's address ends in /v1"
    for key in ("api_key", "api_base"):
        yield from _secret_faults(params, key)


def _secret_faults(table: Table, key: str) -> Iterator[str]:
    value = table.text(key) or ""
    if re.search(r"\$\{\w+", value):
        yield f"`{table.where(key)}` is written as in a shell, which LiteLLM takes literally; write os.environ/NAME"
    elif key.endswith("key") and len(value) > 15 and not value.startswith("os.environ/") and "<" not in value:
        yield f"`{table.where(key)}` stands in the file as plain text; write os.environ/NAME"


def _path(address: str) -> str:
    try:
        return urlsplit(address).path
    except ValueError:  # such as an IPv6 address that does not end
        return ""


def _file_faults(top: Table) -> Iterator[str]:
    general = top.table("general_settings")
    for key in [key for key, value in general.values.items() if isinstance(value, str)]:
        yield from _secret_faults(general, key)
    names = Counter(entry.text("model_name") for entry in _quiet_entries(top))
    retries = next((table.text("num_retries") for table in _settings(top) if "num_retries" in table), None)
    if names.total() == 1 and retries not in (None, "0"):
        yield f"`num_retries` is {retries} with a single engine: a slow request is sent again while the first still runs"
    for name, count in names.items():
        if name is not None and count > 1:
            yield f"`{name}` is there {count} times, so requests are spread over these"


def _fallback_faults(top: Table) -> Iterator[str]:
    known = {entry.text("model_name"): entry.table("litellm_params") for entry in _quiet_entries(top)}
    for table in _settings(top):
        for key in FALLBACKS:
            for rule in table.tables(key):
                for name in rule.values:
                    yield from _targets(name, rule.texts(name), known)
        yield from _targets("any model", table.texts("default_fallbacks"), known)


def _targets(name: str, targets: tuple[str, ...], known: dict[str | None, Table]) -> Iterator[str]:
    for target in targets:
        if target not in known:
            yield f"a request for `{name}` falls back to `{target}`, which `model_list` does not have"
        elif "api_base" not in known[target]:
            yield f"a request for `{name}` that fails is answered by `{target}` in the cloud, and no client is told"
        else:
            yield f"a request for `{name}` that fails is answered by `{target}`, and no client is told"


def _settings(top: Table) -> list[Table]:
    return [top.table("router_settings"), top.table("litellm_settings")]


def _quiet_entries(top: Table) -> list[Table]:
    return [Table(entry.values) for entry in Table(top.values).tables("model_list")]
