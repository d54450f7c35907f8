"""opencode: `opencode.json` or `.jsonc`, in the form of V1 (`provider`, `options`), which V2 reads too, or V2's own."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stoker.clients import Client, Needs, Rendered
from stoker.clients.jsonc import read_jsonc
from stoker.plan.written.table import Table
from stoker.plan.written.tree import Tree
from stoker.records import ClientFact, ClientSetting, ClientUse, Written

PACKAGE = "@ai-sdk/openai-compatible"
OUTPUT_SHARE = 4  # of the context: what is kept free for the answer
FORMS = (("provider", "options", "npm"), ("providers", "settings", "package"))


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns each model of each provider that has an address, and what is said of small requests."""
    tree = read_jsonc(text, name)
    top = Table(tree.value)
    found = [use for form in FORMS for use in _providers(top, form, tree)]
    chosen = top.text("model")
    facts = []
    if found and chosen and top.text("small_model") is None:
        facts.append(ClientFact("client_lacks", "small_model", tree.line("model"), f"`model` is {chosen}"))
    return (*found, ClientUse(facts=tuple(facts)))


def _providers(top: Table, form: tuple[str, str, str], tree: Tree) -> Iterator[ClientUse]:
    table, options, package = form
    for name in top.table(table).values:
        provider = top.table(table).table(name)
        base = _written(provider.table(options), "baseURL", tree)
        if base is None:
            continue
        facts = () if package in provider else (
            ClientFact("client_lacks", "package", tree.line(provider.path), f"`{provider.path}` has no `{package}`"),
        )  # fmt: skip
        key = _written(provider.table(options), "apiKey", tree)
        listed = provider.table("models")
        models = [_model(listed, model, tree) for model in listed.values]
        yield from (ClientUse(base, key, model, facts) for model in models)


def _model(models: Table, key: str, tree: Tree) -> Written:
    """The model as it is asked for: V1's `id` or V2's `modelID` where it has one, else its own name."""
    one = models.table(key) if isinstance(models.values[key], dict) else Table(None)
    return Written(one.text("id") or one.text("modelID") or key, models.where(key), tree.line(models.where(key)))


def _written(table: Table, key: str, tree: Tree) -> Written | None:
    value = table.text(key)
    return Written(value, table.where(key), tree.line(table.where(key))) if value else None


def render(needs: Needs) -> Rendered:
    """Returns a whole opencode.json."""
    name, context = f"stoker/{needs.model}", needs.context_tokens
    model = {} if context is None else {"limit": {"context": context, "output": context // OUTPUT_SHARE}}
    options = {"baseURL": needs.url, "apiKey": f"{{file:{needs.key_file}}}"}
    provider = {"npm": PACKAGE, "name": "Stoker", "options": options, "models": {needs.model: model}}
    tree = {
        "$schema": "https://opencode.ai/config.json",
        "provider": {"stoker": provider},
        "model": name,
        "small_model": name,
    }
    settings = (
        ClientSetting("npm", PACKAGE, "V1 takes it by itself where it is not said, V2 refuses the provider then"),
        ClientSetting("apiKey", "{file:...}", "opencode reads the key from the gateway's own file; {env:NAME} does too"),
        ClientSetting("small_model", name, "titles are otherwise asked of a model in the cloud, with your prompt"),
        ClientSetting("context", "at least 16,384 tokens", "the first request of 1.18.33 alone took 14,058 "
                      "(agent-prompt-14k-tokens)"),
        ClientSetting("limit", "the model's own", "opencode sums a session up before it is full; it cannot know a "
                      "local model's limit by itself"),
    )  # fmt: skip
    return Rendered("~/.config/opencode/opencode.json", json.dumps(tree, indent=2) + "\n", settings)


CLIENT = Client(
    "opencode", "opencode", read, render, places=(".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
    offers_tools=True,
)  # fmt: skip
