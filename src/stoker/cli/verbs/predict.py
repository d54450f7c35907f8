"""`stoker predict`: how fast a model should run, and how far from what the memory allows."""

from __future__ import annotations

import click

from stoker.cli.kinds import seconds, tokens

HELP = """Predict how fast a model runs: what the memory allows, the rate to expect with its interval, and why.

MODEL is a service of stoker.toml, a model's folder or GGUF file, a hub name whose files are in the local cache, or the name
of a published model, whose files nobody needs to have. Nothing is started: every figure is a prediction, fitted
to published measurements of GB10 machines, and its interval should hold four times in five. On a machine without a GPU the
memory is read for half a second, since its bandwidth is in no list.

--rows predicts for each row of a CSV file (`-` is standard input) with the columns model, total_params_b, active_params_b,
weights_gb, quant, engine, engine_version, spec_method, num_spec_tokens, accept_rate_or_len, prompt_tokens, depth,
concurrency and note; all but `model` may be missing or NA. Columns that hold what was measured are not read.

\b
Example:
  stoker predict Qwen3.6-27B-FP8 --engine vllm --measured 7.8
  stoker predict coder --users 8 --think 20s --boxes 2
  stoker predict Gemma4-26B-A4B --quantisation fp8 --speculation mtp --accept-rates 0.91,0.90,0.89,0.85
  stoker predict --rows measured.csv --json
"""


METHODS = ("mtp", "nextn", "eagle", "eagle3", "draft", "standalone", "block", "ngram")


@click.command(help=HELP, short_help="Predict how fast a model runs.")
@click.argument("model", required=False)
@click.option("--rows", metavar="FILE", help="Predict for each row of this CSV file.")
@click.option("--on", "box", default="this", show_default=True, help="this, gb10, gb10-64, h200, pc, or a file.")
@click.option("--engine", help="The engine: sglang, vllm or llamacpp.")
@click.option("--quantisation", help="How the weights are stored: fp8, nvfp4, q4_k_m ...; else the files or the name tell.")
@click.option(
    "--bandwidth", type=click.FloatRange(0.1, 100_000), help="The memory's bandwidth in GB/s, where it was measured."
)
@click.option("--concurrency", "requests", type=click.IntRange(1, 1024), default=1, help="Requests answered at once.")
@click.option("--prompt", type=tokens, default="1k", show_default=True, help="Tokens of a prompt, with all before it.")
@click.option("--answer", type=click.IntRange(1, 100_000), default=400, show_default=True, help="Tokens of an answer.")
@click.option(
    "--measured", type=click.FloatRange(0.01), help="Tokens a second without drafting; else of a kept run of the service."
)
@click.option("--speculation", "method", type=click.Choice(METHODS), help="Show what drafting so would give.")
@click.option("--draft", metavar="MODEL", help="What drafts, with --speculation draft; else the service's own.")
@click.option("--draft-tokens", type=click.IntRange(1, 64), help="Tokens drafted a step.")
@click.option("--accept-rates", help="How often each position is right if all before it were: 0.91,0.90,0.89.")
@click.option("--accept-rate", type=click.FloatRange(0, 1), help="Accepted by proposed draft tokens, at --draft-tokens.")
@click.option("--users", type=click.IntRange(1, 4096), help="Show what so many people would find.")
@click.option(
    "--think", "think_s", type=seconds, default="20s", show_default=True, help="How long they think before they ask."
)
@click.option(
    "--boxes",
    type=click.IntRange(1, 64),
    default=1,
    help="Machines: a copy of the model on each, for --users; and the ways to use them, side by side.",
)
@click.option(
    "--link",
    type=click.Choice(["rdma", "sockets", "unknown"]),
    default="unknown",
    show_default=True,
    help="What connects them: RDMA over ConnectX-7, or sockets.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def predict(model: str | None, rows: str | None, as_json: bool, accept_rates: str | None, **options: object) -> None:
    """Predicts and prints."""
    import msgspec

    from stoker.cli.predict_text import rows_text, speed_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.errors import WrongUse
    from stoker.flows.predicting import Asking, predict_model, predict_rows

    if (rows is None) == (model is None):
        raise WrongUse("there is nothing to predict, or too much", next_step="name either a model or a table (--rows FILE)")
    if rows is not None:
        table = predict_rows(rows)
        say_json(table) if as_json else click.echo(rows_text(table))
        return
    bandwidth, measured = options.pop("bandwidth"), options.pop("measured")
    asking = msgspec.convert({**options, "bandwidth_gb_s": bandwidth, "accept_rates": _rates(accept_rates),
                              "measured_tok_s": measured}, Asking)  # fmt: skip
    view = predict_model(model or "", read_config(find_paths().config), asking)
    say_json(view) if as_json else click.echo(speed_text(view))


def _rates(said: str | None) -> list[float]:
    try:
        rates = [float(word) for word in said.split(",")] if said else []
    except ValueError:
        rates = [-1.0]
    if any(not 0 <= rate <= 1 for rate in rates):
        raise click.BadParameter(f"{said!r} are no rates: write numbers from 0 to 1, such as 0.91,0.90,0.89")
    return rates


COMMAND = predict
