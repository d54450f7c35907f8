"""`stoker serve`: the daemon in the foreground."""

from __future__ import annotations

import logging

import click

HELP = """Run the daemon here, until Ctrl-C or SIGTERM.

`stoker up` starts one in the background when none runs. Services that were up are started again, and engines that a
killed daemon left are taken back once they have proved themselves.

\b
Example:
  stoker serve
  stoker serve --json     one line with the address, once it listens
"""


@click.command(help=HELP, short_help="Run the daemon in the foreground.")
@click.option("--json", "as_json", is_flag=True, help="Print the address as JSON.")
def serve(as_json: bool) -> None:
    """Runs the daemon; the composition root, since only here gateway, web and flows meet."""
    import msgspec

    from stoker.config import find_paths
    from stoker.flows import serve as flow
    from stoker.web.api import make_app

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for noisy in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    paths = find_paths()

    def announce(url: str, is_safe: bool) -> None:
        text = msgspec.json.encode({"url": f"{url}/v1", "key_file": str(paths.key_file)}).decode()
        click.echo(text if as_json else f"listening on {url}/v1; the key is in {paths.key_file}")
        if not is_safe:
            said = "other machines reach this address, in plain HTTP"
            click.echo(f"{said}: keep the key, and set tls_certificate and tls_key in [gateway]", err=True)

    flow.serve(paths, make_app, announce)


COMMAND = serve
