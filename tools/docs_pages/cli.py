"""`docs/cli/`: a page a verb, from its own help."""

from __future__ import annotations

import click

from stoker.cli.main import stoker

WIDTH = 100
NOTE = "<!-- Written by tools/make_docs.py from the verb's help. -->"


def help_text(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    """Returns what `--help` prints, at a fixed width."""
    with click.Context(command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH) as context:
        return command.get_help(context)


def pages() -> dict[str, str]:
    """Returns every page by its path in `docs/`."""
    top = click.Context(stoker, info_name="stoker", help_option_names=["-h", "--help"])
    names = stoker.list_commands(top)
    found = {"cli/index.md": _page("stoker", help_text(stoker, "stoker"), [f"- [`stoker {n}`]({n}.md)" for n in names])}
    for name in names:
        command = stoker.get_command(top, name)
        if command is not None:
            found[f"cli/{name}.md"] = _page(f"stoker {name}", help_text(command, name, top), _below(command, name, top))
    return found


def _below(command: click.Command, name: str, top: click.Context) -> list[str]:
    """Returns the help of the commands that a verb holds."""
    if not isinstance(command, click.Group):
        return []
    parent = click.Context(command, info_name=name, parent=top)
    found = [(word, command.get_command(parent, word)) for word in command.list_commands(parent)]
    texts = [(word, help_text(one, word, parent)) for word, one in found if one is not None]
    return [line for word, text in texts for line in (f"## stoker {name} {word}", "", "```text", text, "```", "")][:-1]


def _page(title: str, text: str, more: list[str]) -> str:
    return "\n".join([f"# {title}", "", NOTE, "", "```text", text, "```", *([""] if more else []), *more]) + "\n"
