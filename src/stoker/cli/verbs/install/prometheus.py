"""`stoker install prometheus`: what Prometheus, Alertmanager and Grafana need to know of Stoker."""

from __future__ import annotations

import click

HELP = """Write what Prometheus, Alertmanager and Grafana need to watch Stoker.

Four files: a configuration that reads the gateway's /metrics, recording and alert rules (the same alerts that Stoker has
built in), a route to a webhook, and a dashboard. Without --to they are printed. Nothing that is in place is changed:
putting them there stays with you, by the commands that are printed. docs/prometheus.md tells what each alert means.

\b
Example:
  stoker install prometheus
  stoker install prometheus --to ~/monitoring --webhook http://127.0.0.1:9000/alert
  stoker install prometheus --engine-metrics --json
"""


@click.command(help=HELP, short_help="Write what Prometheus, Alertmanager and Grafana need.")
@click.option("--to", type=click.Path(file_okay=False), help="Write the files into this folder; ours in it are replaced.")
@click.option("--webhook", help="Where Alertmanager sends what it has to say; else nowhere.")
@click.option("--alertmanager", default="127.0.0.1:9093", show_default=True, help="Where Alertmanager listens.")
@click.option("--gateway", help="HOST:PORT at which Prometheus reaches the gateway; else what stoker.toml says.")
@click.option("--engine-metrics", is_flag=True, help="Read the engines' own metrics too, under their own names.")
@click.option(
    "--scale", type=click.FloatRange(min=0, min_open=True), default=1.0, help="Times as long windows; to try it out."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def prometheus(
    to: str | None, webhook: str | None, alertmanager: str, gateway: str | None, engine_metrics: bool, scale: float,
    as_json: bool,
) -> None:  # fmt: skip
    """Prints or writes the files."""
    from stoker.cli.show import say_json
    from stoker.flows.install_prometheus import Wanted, show_prometheus, write_files

    view = show_prometheus(Wanted(webhook, alertmanager, gateway, engine_metrics, scale))
    if to is not None:
        write_files(view, to)
    if as_json:
        say_json(view)
        return
    for file in view.files if to is None else ():
        click.echo(f"{click.style(f'==> {file.path}  (mode {file.mode})', bold=True)}\n{file.text}")
    where = f"To put them in place, run in {to}:" if to is not None else "To put them in place, with --to FOLDER, run there:"
    click.echo("\n".join([where, *(f"  {command}" for command in view.commands), *view.notes]))


COMMAND = prometheus
