"""Continue, in editors: `~/.continue/config.yaml`."""

# ruff: noqa: N999 - a client's file is named after the client, and clients are only ever imported by their text

from __future__ import annotations

from stoker.clients import KEY_VARIABLE, Client, Needs, Rendered
from stoker.plan.written.table import Table
from stoker.plan.written.tree import Tree, read_tree
from stoker.records import ClientFact, ClientSetting, ClientUse, Written


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the models that are written out; those that `uses` takes from elsewhere are Continue's own."""
    tree = read_tree(text, name)
    return tuple(_use(model, tree) for model in Table(tree.value).tables("models") if "model" in model)


def _use(model: Table, tree: Tree) -> ClientUse:
    base, key, named = (_written(model, name, tree) for name in ("apiBase", "apiKey", "model"))
    facts = []
    if base and "tool_use" not in model.texts("capabilities"):
        facts.append(ClientFact("client_lacks", "tool_use", tree.line(model.where("model")), f"`{model.path}`"))
    return ClientUse(base, key, named, tuple(facts))


def _written(table: Table, key: str, tree: Tree) -> Written | None:
    value = table.text(key)
    return Written(value, table.where(key), tree.line(table.where(key))) if value else None


def render(needs: Needs) -> Rendered:
    """Returns a whole config.yaml."""
    context = f"    defaultCompletionOptions:\n      contextLength: {needs.context_tokens}\n" if needs.context_tokens else ""
    text = (
        f"name: Stoker\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: {needs.model}\n    provider: openai\n"
        f"    model: {needs.model}\n    apiBase: {needs.url}\n    apiKey: ${{{{ secrets.{KEY_VARIABLE} }}}}\n"
        f"    roles: [chat, edit, apply]\n    capabilities: [tool_use]\n{context}"
    )
    settings = (
        ClientSetting("apiKey", f"secrets.{KEY_VARIABLE}", f"put {KEY_VARIABLE}=KEY into ~/.continue/.env (mode 0600): the "
                      "configuration itself is often shared"),
        ClientSetting("capabilities", "tool_use", "Continue guesses from the model's name, and puts tools into the prompt "
                      "as text where it does not know it; leave it out if the engine has no tool parser"),
        ClientSetting("contextLength", "the model's own", "Continue cuts what it sends to a guess of its own otherwise"),
        ClientSetting("roles", "chat, edit, apply", "autocomplete asks at each key stroke; one engine is too slow for that"),
    )  # fmt: skip
    return Rendered("~/.continue/config.yaml", text, settings)


CLIENT = Client("continue", "Continue", read, render, places=(".continue/config.yaml",), offers_tools=True)
