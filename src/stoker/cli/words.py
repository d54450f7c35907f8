"""A verb with commands of its own, one of which is meant where none is named."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any

import click


class Words(click.Group):
    """Lists a verb's folder; what is none of its commands is asked of the default one. `use` is shown as how to call it."""

    def __init__(self, package: str, path: Sequence[str], default: str, use: str, **more: Any) -> None:
        super().__init__(**more)
        self._package, self._path, self._default, self._use = package, path, default, use

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the commands, the default one first."""
        return sorted(
            (found.name for found in pkgutil.iter_modules(self._path)), key=lambda name: (name != self._default, name)
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{self._package}.{cmd_name}").COMMAND
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Puts the default command before words that begin with none."""
        is_named = bool(args) and (args[0] in ctx.help_option_names or args[0] in self.list_commands(ctx))
        return super().parse_args(ctx, args if is_named else [self._default, *args])

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the use without a command first."""
        formatter.write_usage(ctx.command_path, f"{self._use} | COMMAND ...")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the options of the default command, then the commands."""
        default = self.get_command(ctx, self._default)
        if default is not None:
            default.format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
