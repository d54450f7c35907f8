"""`stoker lint`: what is wrong with a launch that somebody wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.flows.lint import Linted

HELP = """Find what is wrong with an engine launch: a command, or a file that holds some.

Reads docker run and plain commands, shell scripts, compose files, systemd units, quadlets, sudoers files, and recipes of
sparkrun, eugr, NVIDIA, vLLM and llama-swap. Nothing is run. Exit code 3: a rule forbids it; 1: it is warned of; 0: clean.

\b
Example:
  stoker lint --on gb10 -- vllm serve mistralai/Mistral-Small-4-119B-2603-NVFP4 --max-model-len 262144
  stoker lint start-sglang.sh
  stoker lint --fix -- docker run --rm --restart always vllm/vllm-openai:latest --model /model
"""


@click.command(
    help=HELP, short_help="Find what is wrong with a launch or recipe.", context_settings={"ignore_unknown_options": True}
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--on", "box", default="this", show_default=True, help="this, gb10, gb10-64, h200, pc, or a file.")
@click.option("--fix", is_flag=True, help="Print the mended command instead of the findings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lint(words: tuple[str, ...], box: str, fix: bool, as_json: bool) -> None:
    """Lints files, or one command."""
    from stoker.cli.show import say_json
    from stoker.facts.machine.boxes import THIS
    from stoker.flows.lint import lint_file, lint_words

    is_file = len(words) == 1 or all(Path(word).is_file() for word in words)
    linted = [one for word in words for one in lint_file(Path(word), box)] if is_file else lint_words(words, box)
    if as_json:
        say_json(linted)
    elif fix:
        click.echo("\n\n".join(one.mended or "# nothing here can be mended by changing flags" for one in linted))
    else:
        _say(linted)
        place = "this machine; `--on gb10` judges for a DGX Spark" if box == THIS else box
        click.echo(click.style(f"judged for {place}", dim=True))
    levels = {finding.level for one in linted for finding in one.findings}
    raise SystemExit(3 if "forbid" in levels else 1 if "warn" in levels else 0)


COMMAND = lint


def _say(linted: list[Linted]) -> None:
    from stoker.cli.plan_text import findings_lines
    from stoker.plan.lint import place_of

    for one in linted:
        recipe = one.recipe
        named = " ".join(part for part in (recipe.name, recipe.engine, recipe.model) if part) or recipe.kind
        click.echo(click.style(named, bold=True) + f"   {place_of(recipe)}")
        click.echo("\n".join(findings_lines(one.findings, {})) or "nothing is known against it")
        for what in recipe.unknown:
            click.echo(click.style(f"not understood: {what}", dim=True))
        click.echo()
