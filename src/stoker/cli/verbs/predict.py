"""`stoker predict`: how fast a model should run, and how far from what the memory allows."""

from __future__ import annotations

import click

HELP = """Predict how fast a model runs: what the memory allows, the rate to expect with its interval, and why.

MODEL is a service of stoker.toml, a model's folder or GGUF file, a hub name whose files are in the local cache, or the name
of a published model, whose files nobody needs to have. Nothing is started or measured: every figure is a prediction, fitted
to published measurements of GB10 machines, and its interval should hold four times in five.

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


@click.command(help=HELP, short_help="Predict how fast a model runs.")
@click.argument("model", required=False)
@click.option("--rows", metavar="FILE", help="Predict for each row of this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def predict(model: str | None, rows: str | None, as_json: bool) -> None:
    """Predicts and prints."""
    from stoker.cli.predict_text import rows_text
    from stoker.cli.show import say_json
    from stoker.errors import WrongUse
    from stoker.flows.predicting import predict_rows

    if (rows is None) == (model is None):
        raise WrongUse("there is nothing to predict, or too much", next_step="name either a model or a table (--rows FILE)")
    view = predict_rows(rows or "")
    if as_json:
        say_json(view)
    else:
        click.echo(rows_text(view))


COMMAND = predict
