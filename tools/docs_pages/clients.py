"""`docs/clients.md`: what each client is told and why, and what is found in its settings, from their files and the rules."""

from __future__ import annotations

from stoker.clients import Client, Needs, find, names
from stoker.rules.load import load_folder

NOTE = "<!-- Written by tools/make_docs.py from src/stoker/clients/known and src/stoker/rules/data/client. -->"
NEEDS = Needs("http://127.0.0.1:8700/v1", "~/.local/state/stoker/gateway.key", "qwen3-coder", 65536)
LANGUAGES = {
    "vibe": "toml",
    "litellm": "yaml",
    "continue": "yaml",
    "opencode": "json",
    "openai": "python",
    "mistralai": "python",
}
INTRODUCTION = """\
`stoker clients config NAME` prints what a client needs to ask this machine's gateway: the address, the model's name,
how to refer to the key, and the settings that turned out to be necessary. The text goes to standard output, the reasons
to standard error; the key itself is printed only with `--with-key`. `--model` chooses among several models. A key of
its own for a client: [keys](keys.md). `--mcp` prints instead what makes an agent start `stoker mcp` ([MCP](mcp.md)).

`stoker clients check NAME FILE` finds what is wrong in a client's file, with the line: addresses, ports and models that
nobody answers for, keys as text, lists of fallbacks, parsers that the server lacks (as far as the plan of the service
tells). Nothing is sent to the client's other servers. Exit code 1: something was found.

## MCP servers of Vibe

`stoker clients check vibe` reads `config.toml` in `VIBE_HOME` or `~/.vibe`; a folder or file may be named instead. Each
server with `transport = "stdio"` is started as Vibe does: its words without a shell, the same few variables of your
environment and its own `env`, and timed until the handshake is done and it has told its tools. One after the other, for
at most 60 s each (more where `startup_timeout_sec` says so), and none of its processes is left afterwards. Those of a
project's file are started only where Vibe trusts the folder, or with `--start`; `--no-start` starts none.

What that costs depends on Vibe's version. Up to 2.18.4 every server is started in each session, disabled ones too, and
the first turn waits for the slowest; 3.0 keeps the tools for a day and leaves disabled ones alone. A server that is
called is started once more.

- `--remove NAME` takes a server out. Do not do so where you use its tools.
- `--mend` calls the installed program in place of `npx`, `uvx`, `pipx run` and their like, where it is installed; the
  finding says the command that installs it. Tables that Vibe passes over, such as `[mcp.NAME]`, are taken out.

What goes becomes a comment, all else stays byte for byte, and the former file is kept beside the new one
(`config.toml.before-DATE`). A file that would not say exactly what it should is not written.
"""


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`."""
    lines = ["# Clients", "", NOTE, "", INTRODUCTION]
    for name in names():
        lines += _section(find(name))
    return {"clients.md": "\n".join([*lines, *_rules()]) + "\n"}


def _section(client: Client) -> list[str]:
    rendered = client.render(NEEDS)
    lines = [f"## {client.title}", "", f"`stoker clients config {client.name}`, for {rendered.place}:", ""]
    lines += [f"```{LANGUAGES.get(client.name, 'sh')}", rendered.text.rstrip("\n"), "```", ""]
    for one in rendered.settings:
        named = f"{one.name} = {one.value}" if one.value else one.name
        lines.append(f"- `{named}`: {one.because}.")
    return [*lines, ""]


def _rules() -> list[str]:
    found = [rule for rule in load_folder("client") if rule.wrong]
    return ["## What is found", "", *(f"- [{rule.id}](rules/{rule.id}.md): {rule.title}" for rule in found)]
