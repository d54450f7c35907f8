"""`stoker bench`: how fast an endpoint is. Its commands are the files of this folder; without one named it measures."""

from __future__ import annotations

import importlib
import pkgutil

import click

DEFAULT = "measure"


class Words(click.Group):
    """Lists this folder; what is none of its commands is asked of the one that measures."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the commands, the one that measures first."""
        return sorted((found.name for found in pkgutil.iter_modules(__path__)), key=lambda name: (name != DEFAULT, name))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").COMMAND
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command before words that begin with none."""
        is_named = bool(args) and (args[0] in ctx.help_option_names or args[0] in self.list_commands(ctx))
        return super().parse_args(ctx, args if is_named else [DEFAULT, *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the use without a command first."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] [SERVICE] | COMMAND ...")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the options of the default command, then the commands."""
        measure = self.get_command(ctx, DEFAULT)
        if measure is not None:
            measure.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


HELP = """Measure how fast an endpoint is, truly, and what speculation brings it.

SERVICE is one of yours, asked through the gateway (--direct: past it); --url measures any OpenAI-compatible address.
Each combination of prompt, new tokens, depth and concurrency is a cell: warmed up until it is steady, then repeated
until its interval is narrow enough. Prompts are exactly so many tokens by the server's own count, no two begin alike,
and no figure counts what failed. docs/bench.md defines every figure. Ctrl-C keeps what was measured. Exit code 1:
requests failed, or it was interrupted; 3: something asked for cannot be.

\b
Example:
  stoker bench
  stoker bench coder --pp 512 2048 --tg 128 --depth 0 4096 --concurrency 1 8 --content code
  stoker bench --url http://spark:8000/v1 --model gemma --key-file key.txt --runs 5 --json
  stoker bench coder --rate 2 --arrivals poisson --requests 60 --slo ttft=500ms,itl=50ms
  stoker bench coder --content code --content prose --content chat
  stoker bench coder --soak 1h --concurrency 4
"""
COMMAND = Words(name="bench", help=HELP, short_help="Measure how fast an endpoint is.")
