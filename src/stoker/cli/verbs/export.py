"""`stoker export`: the plan for a cluster."""

from __future__ import annotations

from typing import Any

import click

from stoker.cli.kinds import names

HELP = """Write a service's plan for a cluster: a Ray Serve LLM application or Kubernetes manifests, reasons as comments.

It is the plan that `stoker plan SERVICE` shows, of one box or over several. Kubernetes gets a Deployment for one box, a
LeaderWorkerSet for a model over several, a Service, requests for GPUs, and probes. Nothing is started or sent anywhere. Exit
code 3 means that a rule forbids the plan, or that it cannot be written so.

\b
Example:
  stoker export kubernetes coder --on gb10 > coder.yaml
  stoker export kubernetes coder --boxes a,b --rdma-resource rdma/hca_shared_devices_a
  stoker export ray-serve coder > serve.yaml
"""


@click.command(help=HELP, short_help="Write a plan for Ray Serve or Kubernetes.")
@click.argument("form", type=click.Choice(["ray-serve", "kubernetes"]))
@click.argument("service")
@click.option("--on", "box", help="Plan for this machine: gb10, gb10-64, h200, pc, or a file; else the one at hand.")
@click.option("--boxes", type=names, help="Spread it over these, the head first.")
@click.option("--image", help="The container image to run it in.")
@click.option("--namespace", help="The namespace, for Kubernetes.")
@click.option("--rdma-resource", help="What the cluster's device plugin calls a port for RDMA, for Kubernetes.")
@click.option("--json", "as_json", is_flag=True, help="Print the text inside JSON.")
def export(form: Any, service: str, box: str | None, as_json: bool, **options: Any) -> None:
    """Plans and prints."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.flows.clusters import export_service
    from stoker.flows.planning import find_wish, with_options
    from stoker.launch.kubernetes import Cluster

    cluster = Cluster(options.pop("namespace"), options.pop("rdma_resource"))
    wish = with_options(find_wish(service, read_config(find_paths().config)), options)
    text = export_service(wish, form, box, cluster)
    say_json({"form": form, "service": wish.name, "text": text}) if as_json else click.echo(text, nl=False)


COMMAND = export
