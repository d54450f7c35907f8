"""`stoker fetch`: a model from the hub, whole and verified."""

from __future__ import annotations

from pathlib import Path

import click

HELP = """Fetch a model and its draft from the hub: what engines need of it, resumably, each file verified by its hash.

MODEL is a hub name (org/name, with :QUANT for one GGUF of several) or a service of stoker.toml, whose model, draft and
container image are then fetched. The files go into the hub's cache, or --to a folder. Files that a release lacks are taken
from the repository it was made from, if you agree. What came stays: the same command goes on where it stopped. Exit code
1: something is missing; 3: refused (no room, no access); 4: the hub did not answer in time.

\b
Example:
  stoker fetch mistralai/Mistral-Small-4-119B-2603-NVFP4 --draft mistralai/Mistral-Small-4-119B-2603-eagle
  stoker fetch unsloth/Qwen3-8B-GGUF:Q4_K_M --dry-run
  stoker fetch coder --yes
"""


@click.command(help=HELP, short_help="Fetch a model from the hub, whole and verified.")
@click.argument("model", required=False)
@click.option("--service", help="The service whose model and draft are fetched.")
@click.option("--draft", help="A draft model to fetch too.")
@click.option("--revision", help="The model's branch, tag or commit; else main.")
@click.option("--to", type=click.Path(path_type=Path, file_okay=False), help="A folder, instead of the hub's cache.")
@click.option("--all", "everything", is_flag=True, help="All files, also those that no engine here needs.")
@click.option("--yes", is_flag=True, help="Take files that the release lacks from its base repository, without asking.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only say what would be fetched.")
@click.option("--xet/--no-xet", default=None, help="Through Xet or plain HTTP; else plain HTTP where the hub has it.")
@click.option("--ipv4-only/--any-ip", "ipv4_only", default=None, help="IPv4 alone; else where IPv6 does not answer.")
@click.option("--endpoint", help="The hub's address; else HF_ENDPOINT, else the public hub.")
@click.option("--workers", type=click.IntRange(1, 32), help="Files fetched at once.")
@click.option("--token-file", type=click.Path(path_type=Path), help="A file that holds the token.")
@click.option("--connect-s", type=click.FloatRange(0.1, 3600), help="Seconds that connecting may take.")
@click.option("--stall-s", type=click.FloatRange(0.1, 86400), help="Seconds without a byte that count as a stall.")
@click.option("--patience-s", type=click.FloatRange(0, 604800), help="Seconds that waits for the hub may take in all.")
@click.option("--tries", type=click.IntRange(1, 1000), help="Attempts in a row without a byte before giving up.")
@click.option("--keep-free-bytes", type=click.IntRange(0), help="Bytes of the disk that stay free.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fetch(
    model: str | None, service: str | None, draft: str | None, revision: str | None, to: Path | None, everything: bool,
    yes: bool, is_dry_run: bool, as_json: bool, **settings: object,
) -> None:  # fmt: skip
    """Fetches and says what came of it."""
    from stoker.cli.fetch_text import Teller, fetch_text
    from stoker.cli.show import say_json
    from stoker.config import find_paths, read_config
    from stoker.flows.fetching import fetch as fetch_order
    from stoker.flows.fetching import make_order
    from stoker.written_paths import expand_home

    paths = find_paths()
    config = read_config(paths.config)
    order = make_order(config, paths, model=model, service=service, draft=draft, revision=revision, settings=settings)
    order = order._replace(to=expand_home(to).absolute() if to else None, everything=everything, is_dry_run=is_dry_run)
    teller = Teller(says_yes=yes)
    view = fetch_order(order, teller.desk())
    if as_json:
        say_json(view)
    else:
        click.echo(fetch_text(view))
    is_of_use = is_dry_run or everything or all(one.loads_in for one in view.models)
    raise SystemExit(1 if any(one.lacks for one in view.models) or not is_of_use else 0)


COMMAND = fetch
