"""`stoker ask`: one question, answered as it comes."""

from __future__ import annotations

import click

HELP = """Ask a model one question through the gateway and print the answer as it comes.

\b
Example:
  stoker ask "Who are you?"
  stoker ask --think "What is 17 + 25?"
  stoker ask --model qwen3-8b "Write a haiku about memory."
"""


@click.command(help=HELP, short_help="Ask a model one question.")
@click.argument("question", nargs=-1, required=True)
@click.option("--model", help="The model; needed where more than one is READY.")
@click.option("--think", is_flag=True, help="Let the model think first, where it can.")
@click.option("--max-tokens", default=512, show_default=True, type=click.IntRange(1, 1_000_000), help="At most so many.")
@click.option("--temperature", type=click.FloatRange(0, 5), help="0 is greedy; else the engine's own.")
@click.option("--json", "as_json", is_flag=True, help="Print model, answer, thoughts and ttft_s as JSON.")
def ask(
    question: tuple[str, ...], model: str | None, think: bool, max_tokens: int, temperature: float | None, as_json: bool
) -> None:
    """Streams an answer; words that were not quoted are one question all the same."""
    from stoker.cli.show import printable, say_json
    from stoker.config import find_paths
    from stoker.errors import Refused
    from stoker.flows.ask import ask as ask_flow
    from stoker.flows.ask import choose_model
    from stoker.flows.client import find_daemon

    daemon = find_daemon(find_paths())
    if daemon is None:
        raise Refused("the daemon is not running", next_step="`stoker up` starts it and serves the demo model")
    chosen = choose_model(daemon, model)
    said: dict[bool, list[str]] = {True: [], False: []}
    first_s: float | None = None
    for piece in ask_flow(daemon, chosen, " ".join(question), think=think, max_tokens=max_tokens, temperature=temperature):
        first_s = piece.after_s if first_s is None else first_s
        if not as_json:
            if said[True] and not said[False] and not piece.is_thought:
                click.echo()
            click.echo(click.style(printable(piece.text), dim=True) if piece.is_thought else printable(piece.text), nl=False)
        said[piece.is_thought].append(piece.text)
    if as_json:
        say_json({"model": chosen, "answer": "".join(said[False]), "thoughts": "".join(said[True]), "ttft_s": first_s})
    else:
        click.echo()


COMMAND = ask
