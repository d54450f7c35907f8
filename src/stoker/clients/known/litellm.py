"""LiteLLM's proxy: its configuration in YAML, as 1.106.2 reads it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stoker.clients import KEY_VARIABLE, Client, Needs, Rendered
from stoker.plan.written.litellm import FALLBACKS
from stoker.plan.written.table import Table
from stoker.plan.written.tree import Tree, read_tree
from stoker.records import ClientFact, ClientSetting, ClientUse, Written

SECTIONS = ("router_settings", "litellm_settings")
MASTER = "LITELLM_MASTER_KEY"


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the models that it passes on, and what it does with errors and parameters."""
    tree = read_tree(text, name)
    top = Table(tree.value)
    entries = [entry.table("litellm_params") for entry in top.tables("model_list")]
    settings = [top.table(section) for section in SECTIONS]
    odd = [*_fallbacks(settings, tree), *_drops([*settings, *entries], tree), *_retries(settings, len(entries), tree)]
    master = _written(top.table("general_settings"), "master_key", tree)
    uses = [*(_use(entry, tree) for entry in entries), ClientUse(key=master, facts=tuple(odd))]
    return tuple(msgspec.structs.replace(one, facts=(*one.facts, *_literal(one.key))) for one in uses)


def _use(entry: Table, tree: Tree) -> ClientUse:
    model = _written(entry, "model", tree)
    served = Written(model.value.partition("/")[2] or model.value, model.path, model.line) if model else None
    return ClientUse(_written(entry, "api_base", tree), _written(entry, "api_key", tree), served)


def _literal(key: Written | None) -> Iterator[ClientFact]:
    """A key that is written as a shell's variable, which LiteLLM does not look up."""
    if key and key.value.startswith("$"):
        yield ClientFact("client_key", "shell", key.line, f"`{key.path}` is {key.value}")


def _written(table: Table, key: str, tree: Tree) -> Written | None:
    value = table.text(key)
    return Written(value, table.where(key), tree.line(table.where(key))) if value else None


def _fallbacks(settings: list[Table], tree: Tree) -> Iterator[ClientFact]:
    for table in settings:
        for key in (*FALLBACKS, "default_fallbacks"):
            if table.values.get(key):
                yield ClientFact("client_sets", "fallbacks", tree.line(table.where(key)), f"`{table.where(key)}`")


def _drops(tables: list[Table], tree: Tree) -> Iterator[ClientFact]:
    for table in tables:
        if table.is_on("drop_params"):
            yield ClientFact(
                "client_sets", "drop_params", tree.line(table.where("drop_params")), f"`{table.where('drop_params')}`"
            )


def _retries(settings: list[Table], models: int, tree: Tree) -> Iterator[ClientFact]:
    for table in settings:
        count = table.text("num_retries")
        if models == 1 and count not in (None, "0"):
            where = table.where("num_retries")
            yield ClientFact("client_sets", "retries", tree.line(where), f"`{where}` is {count} with one model")


def render(needs: Needs) -> Rendered:
    """Returns the proxy's whole configuration for one model."""
    text = (
        f"model_list:\n  - model_name: {needs.model}\n    litellm_params:\n      model: openai/{needs.model}\n"
        f"      api_base: {needs.url}\n      api_key: os.environ/{KEY_VARIABLE}\n"
        "litellm_settings:\n  drop_params: false\n  num_retries: 0\n  request_timeout: 900\n"
        f"general_settings:\n  master_key: os.environ/{MASTER}\n"
    )
    settings = (
        ClientSetting("fallbacks", "none", "a fallback answers from another model when this one answers 400, and no "
                      "client is told (router-silent-failover)"),
        ClientSetting("drop_params", "false", "true leaves out of requests what LiteLLM takes for unknown, in silence"),
        ClientSetting("num_retries", "0", "there is one engine: a slow request is sent again while the first still runs"),
        ClientSetting("request_timeout", "900", "as long as the gateway waits for a silent engine (engine_silence_limit_s)"),
        ClientSetting("api_key", f"os.environ/{KEY_VARIABLE}", "LiteLLM's own form; `${...}` stays text there"),
    )  # fmt: skip
    return Rendered("config.yaml of the proxy", text, settings)


CLIENT = Client("litellm", "LiteLLM proxy", read, render)
