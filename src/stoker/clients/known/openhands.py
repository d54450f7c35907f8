"""OpenHands: its `config.toml` (versions before the agent SDK), or `LLM_*` variables; newer settings are typed in."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.clients import Client, Needs, Rendered
from stoker.clients.assigned import find_assigned, join_uses
from stoker.clients.toml_lines import Lines, find_lines, read_toml
from stoker.plan.written.table import Table
from stoker.records import ClientFact, ClientSetting, ClientUse, Written

EXTENSIONS = "AGENT_ENABLE_PROMPT_EXTENSIONS"


def read(text: str, name: str) -> tuple[ClientUse, ...]:
    """Returns the models; a file that ends in .toml is `config.toml`, any other one sets variables."""
    return _read_toml(text, name) if name.endswith(".toml") else _read_variables(text)


def _read_toml(text: str, name: str) -> tuple[ClientUse, ...]:
    top, lines = Table(read_toml(text, name)), find_lines(text)
    llm = top.table("llm")
    groups = [llm, *(llm.table(key) for key, value in llm.values.items() if isinstance(value, dict))]
    extended = top.table("agent").values.get("enable_prompt_extensions") is not False
    return tuple(_use(group, extended, lines) for group in groups if "base_url" in group)


def _use(group: Table, extended: bool, lines: Lines) -> ClientUse:
    base, key, model = (_written(group, name, lines) for name in ("base_url", "api_key", "model"))
    facts = [*_extensions(extended, lines.line("agent.enable_prompt_extensions") or (model.line if model else 0))]
    if group.is_on("drop_params"):
        facts.append(ClientFact("client_sets", "drop_params", lines.line(group.where("drop_params")), "`drop_params`"))
    return ClientUse(base, key, _bare(model), tuple(facts))


def _read_variables(text: str) -> tuple[ClientUse, ...]:
    urls, keys = find_assigned(text, ["LLM_BASE_URL"]), find_assigned(text, ["LLM_API_KEY"])
    models = [one for found in find_assigned(text, ["LLM_MODEL"]) if (one := _bare(found))]
    off = any(one.value.lower() == "false" for one in find_assigned(text, [EXTENSIONS]))
    facts = tuple(_extensions(not off, models[0].line if models else 0))
    uses = join_uses(urls, keys, models)
    return tuple(ClientUse(one.base_url, one.key, one.model, facts) for one in uses)


def _extensions(on: bool, line: int) -> Iterator[ClientFact]:
    if on:
        yield ClientFact("client_sets", "prompt extensions", line, "`enable_prompt_extensions` is not false")


def _written(table: Table, key: str, lines: Lines) -> Written | None:
    value = table.text(key)
    return Written(value, table.where(key), lines.line(table.where(key))) if value else None


def _bare(model: Written | None) -> Written | None:
    """The model as the server knows it: OpenHands writes LiteLLM's provider before it."""
    return Written(model.value.partition("/")[2] or model.value, model.path, model.line) if model else None


def render(needs: Needs) -> Rendered:
    """Returns the variables; what is typed into the settings page is the same."""
    text = (
        f'export LLM_MODEL="openai/{needs.model}"\nexport LLM_BASE_URL="{needs.url}"\n'
        f'export LLM_API_KEY="$(cat {needs.key_file})"\nexport {EXTENSIONS}=false\n'
        "openhands --override-with-envs\n"
    )
    settings = (
        ClientSetting("LLM_MODEL", f"openai/{needs.model}", "the part before the slash is LiteLLM's: any server that speaks "
                      "OpenAI's protocol; in the settings page it is Advanced, Custom Model"),
        ClientSetting("--override-with-envs", "", "the command passes the variables over without it; the versions with a "
                      "config.toml read them by themselves"),
        ClientSetting(EXTENSIONS, "false", "messages of one role in a row otherwise, which Mistral's templates refuse; "
                      'versions on the agent SDK have no such switch: give the service filters = ["merge-turns"]'),
        ClientSetting("--network host", "", "in a container 127.0.0.1 is the container itself, and no gateway is there"),
    )  # fmt: skip
    return Rendered("your shell, or its settings page", text, settings)


CLIENT = Client("openhands", "OpenHands", read, render, offers_tools=True)
