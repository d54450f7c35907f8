"""`stoker clients`: what the programs that ask your models need, and what is wrong with what they were told."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Set up the programs that ask your models, and check their settings.

Known: Continue, curl, LiteLLM, Mistral's and OpenAI's libraries, Mistral Vibe, Open WebUI, opencode, OpenHands.

\b
Example:
  stoker clients config opencode
  stoker clients check vibe
  stoker clients check litellm config.yaml --json
"""
CONFIG = """Print what makes a client ask this machine's gateway, with the reason of each setting.

The text goes to standard output, the reasons to standard error. The key is referred to, never printed, unless you say
--with-key.

--mcp prints instead what makes an agent (vibe, claude-code, opencode) start `stoker mcp`, which answers why an engine
failed, what a flag does, and what is known.

\b
Example:
  stoker clients config litellm --model qwen3-coder > config.yaml
  stoker clients config vibe
  stoker clients config claude-code --mcp
"""
CHECK = """Find what is wrong in a client's file: wrong addresses, models, keys, fallbacks, parsers that the server lacks.

Of Vibe the file is its own (VIBE_HOME, ~/.vibe/config.toml) if none is named, and its MCP servers are started as it
would start them, timed until they have told their tools, and ended. Those of a file that Vibe does not trust are
not, unless you say --start. --mend calls the installed program in place of a look-up at each start, where it is
installed; --remove takes a server out. What goes becomes a comment, and the former file is kept beside it. Exit code
1: something was found.

\b
Example:
  stoker clients check vibe
  stoker clients check vibe --remove alby
  stoker clients check open-webui compose.yaml
"""


@click.group(help=HELP, short_help="Set up programs that ask your models.")
def clients() -> None:
    """Holds the two commands."""


COMMAND = clients


@clients.command(help=CONFIG, short_help="Print what a client needs to know.")
@click.argument("name")
@click.option("--model", help="The model; needed where more than one is there.")
@click.option("--with-key", is_flag=True, help="Print the key too.")
@click.option("--mcp", is_flag=True, help="Print the entry that makes an agent start `stoker mcp` instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def config(name: str, model: str | None, with_key: bool, mcp: bool, as_json: bool) -> None:
    """Prints the text on standard output, so that it can go into a file, and the reasons on standard error."""
    from stoker.cli.client_text import reasons_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.clients import make_config, make_mcp_config

    if mcp and (model or with_key):
        raise click.UsageError("--mcp names neither a model nor a key.")
    made = make_mcp_config(find_paths(), name) if mcp else make_config(find_paths(), name, model, with_key)
    if as_json:
        say_json(made)
    else:
        click.echo(made.text, nl=False)
        click.echo(f"\n{reasons_text(made)}", err=True)


@clients.command(help=CHECK, short_help="Find what is wrong in a client's file.")
@click.argument("name")
@click.argument("place", metavar="[FILE|FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option("--start/--no-start", default=None, help="Start its MCP servers, or do not.")
@click.option("--mend", is_flag=True, help="Write the mended file.")
@click.option("--remove", multiple=True, metavar="SERVER", help="Take this MCP server out; may be said again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(name: str, place: Path | None, start: bool | None, mend: bool, remove: tuple[str, ...], as_json: bool) -> None:
    """Prints the findings."""
    from stoker.cli.client_text import report_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.flows.clients import Asked, check_client

    report = check_client(find_paths(), name, place, Asked(start, mend, remove))
    if as_json:
        say_json(report)
    else:
        click.echo(report_text(report))
    raise SystemExit(1 if any(one.level != "note" for one in report.findings) else 0)
