"""`stoker`: finds the verbs, and turns errors into sentences and exit codes."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

import click

from stoker import __version__
from stoker.cli import verbs
from stoker.errors import BY_EXIT_CODE, StokerError, WrongUse

# The verbs by what one wants to do; a verb that is not named here comes under the last heading.
MAP = {
    "Serve": ("up", "ask", "status", "switch", "roll", "down", "rollback", "run", "adopt"),
    "Before it runs": ("plan", "predict", "lint", "import", "fetch", "check"),
    "Prove and measure": ("verify", "bench", "tune"),
    "Notice and explain": ("watch", "alerts", "history", "logs", "timeline", "diagnose"),
    "Let programs and boxes in": ("clients", "mcp", "keys", "usage", "boxes"),
    "Look up what is known": ("rules", "flags", "facts"),
    "Set up": ("install", "uninstall", "export", "completion", "serve"),
}
MEANT = {
    "stop": ["down"],
    "start": ["up"],
    "list": ["status"],
    "ps": ["status"],
    "chat": ["ask"],
    "help": ["--help"],
}
EPILOG = """\b
First steps:
  stoker up                 serve the bundled demo model
  stoker ask "Who are you?" talk to it
  stoker up MODEL.gguf      serve a model of yours
  stoker status             what runs, since when, and why

Every verb has --help with an example, and --json. Exit codes: 0 done, 1 a fault or failed check, 2 wrong use,
3 refused, 4 not ready in time."""


class Verbs(click.Group):
    """Lists the verbs' folder; a verb's own imports wait until it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the verbs in the order of the map."""
        return [name for names in self._map().values() for name in names]

    def _map(self) -> dict[str, list[str]]:
        names = {found.name for found in pkgutil.iter_modules(verbs.__path__)}
        placed = {heading: [name for name in known if name in names] for heading, known in MAP.items()}
        placed[next(reversed(MAP))] += sorted(names.difference(*MAP.values()))
        return placed

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Shows the verbs under the headings of the map, all in one column."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in self._map().items():
            with formatter.section(heading):
                commands = ((name, self.get_command(ctx, name)) for name in names)
                formatter.write_dl([(name.ljust(width), one.get_short_help_str()) for name, one in commands if one])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports one verb."""
        if cmd_name not in self.list_commands(ctx):
            import difflib  # only who mistyped a verb waits for it

            close = difflib.get_close_matches(cmd_name, self.list_commands(ctx), n=1) or MEANT.get(cmd_name, [])
            hint = f"did you mean `stoker {close[0]}`?" if close else "`stoker --help` lists them"
            raise WrongUse(f"there is no verb `{cmd_name}`", next_step=hint)
        command: click.Command = importlib.import_module(f"{verbs.__name__}.{cmd_name}").COMMAND
        return command


@click.group(cls=Verbs, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="stoker")
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
def stoker(verbose: bool) -> None:
    """Tends the LLM engines of this machine: plans, starts, proves and fronts them.

    One OpenAI-compatible address for all of them, and never an answer from another model than the one asked for.
    """


def main() -> None:
    """Runs the command line; an error becomes a sentence on standard error and an exit code."""
    try:
        sys.exit(stoker.main(prog_name="stoker", standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as problem:  # a group alone: what it can do was asked for
        problem.show(sys.stdout)
    except click.Abort:
        click.echo("stoker: it was broken off", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as problem:  # noqa: BLE001 - the last stop before the person at the desk
        if "--verbose" in sys.argv[1:2]:
            import traceback  # seldom wanted, and as long to load as a verb

            traceback.print_exc()
        known = _in_our_words(problem)
        if "--json" in sys.argv:
            _say_fault(known)
        click.echo(f"stoker: {known}", err=True)
        sys.exit(known.exit_code)


def _say_fault(problem: StokerError) -> None:
    """Prints the error as JSON too, for the program that asked for JSON."""
    from stoker.cli.show import say_json
    from stoker.flows.client import fault_of

    say_json({"fault": fault_of(problem)})


def _in_our_words(problem: Exception) -> StokerError:
    if isinstance(problem, StokerError):
        return problem
    return _misused(problem) if isinstance(problem, click.ClickException) else _unforeseen(problem)


def _misused(problem: click.ClickException) -> StokerError:
    """Returns what click says of the words on the command line, with how the verb is used."""
    said, context = " ".join(problem.format_message().split()), getattr(problem, "ctx", None)
    what = (said[:1].lower() + said[1:]).rstrip(".")
    if context is None:
        return BY_EXIT_CODE.get(problem.exit_code, StokerError)(what)
    usage = " ".join(context.get_usage().removeprefix("Usage: ").split())
    return WrongUse(what, next_step=f"{usage}; `{context.command_path} --help` explains it")


def _unforeseen(problem: Exception) -> StokerError:
    return StokerError(
        f"Stoker itself failed: {type(problem).__name__}: {problem}",
        why="nobody foresaw this; it is a fault of Stoker, not of yours",
        next_step="run it again as `stoker --verbose ...` and report what it prints",
    )
