"""Writes the pages of `docs/cli/` from the verbs' own help; `--check` only says whether they are as they should be."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import click

from stoker.cli.main import stoker

FOLDER = Path(__file__).parent.parent / "docs" / "cli"
WIDTH = 100


def help_text(command: click.Command, name: str, parent: click.Context | None = None) -> str:
    """Returns what `--help` prints, at a fixed width."""
    with click.Context(command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH) as context:
        return command.get_help(context)


def pages() -> dict[str, str]:
    """Returns every page by its file name."""
    top = click.Context(stoker, info_name="stoker", help_option_names=["-h", "--help"])
    names = stoker.list_commands(top)
    found = {"index.md": _page("stoker", help_text(stoker, "stoker"), [f"- [`stoker {n}`]({n}.md)" for n in names])}
    for name in names:
        command = stoker.get_command(top, name)
        if command is not None:
            found[f"{name}.md"] = _page(f"stoker {name}", help_text(command, name, top), [])
    return found


def _page(title: str, text: str, more: list[str]) -> str:
    note = "<!-- Written by tools/make_docs.py from the verb's help. -->"
    return "\n".join([f"# {title}", "", note, "", "```text", text, "```", *([""] if more else []), *more]) + "\n"


def main() -> None:
    """Writes the pages, or exits with 1 where one is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = pages()
    stale = sorted({file.name for file in FOLDER.glob("*.md")} - wanted.keys())
    for name, text in wanted.items():
        file = FOLDER / name
        if file.exists() and file.read_text() == text:
            continue
        stale.append(name)
        if not check:
            FOLDER.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if check and stale:
        sys.exit(f"docs/cli is not what the verbs say ({', '.join(stale)}); run `make docs`")


if __name__ == "__main__":
    main()
