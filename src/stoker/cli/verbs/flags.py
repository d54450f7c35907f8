"""`stoker flags`: the flags of an engine, by exact version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records.flags import CatalogChanges, FlagsView, KnownVersions

HELP = """Show the flags of an engine, as its own parser declares them.

Without a version: the versions that are known. With one: its flags. With two: what was added, removed, renamed or given
another default from the first to the second.

ENGINE is llamacpp, sglang or vllm. --server asks an engine that is installed here: its program, or the python that it is
installed for. --image asks the engine in a container image that was pulled, in a container that gets neither network nor
files nor GPU. With a version, they show what is different from that.

\b
Example:
  stoker flags vllm
  stoker flags sglang 0.5.23 --search speculative
  stoker flags sglang 0.5.12 0.5.23
  stoker flags llamacpp --server /usr/local/bin/llama-server
  stoker flags sglang 0.5.23 --image lmsysorg/sglang:dev-cu13
"""


@click.command(help=HELP, short_help="Show an engine's flags, or what two versions changed.")
@click.argument("engine")
@click.argument("versions", nargs=-1, metavar="[VERSION [VERSION]]")
@click.option("--server", metavar="PROGRAM", help="Ask this engine itself.")
@click.option("--image", metavar="IMAGE", help="Ask the engine in this image.")
@click.option("--search", metavar="TEXT", default="", help="Only flags that have this in a word or a value.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def flags(engine: str, versions: tuple[str, ...], server: str | None, image: str | None, search: str, as_json: bool) -> None:
    """Prints versions, flags, or changes."""
    from stoker.cli.flag_text import changes_text, flags_text
    from stoker.cli.show import say_json
    from stoker.records.flags import CatalogChanges, KnownVersions

    view = _find(engine, versions, server, image, search)
    if as_json:
        say_json(view)
    elif isinstance(view, KnownVersions):
        click.echo(f"{view.engine}: {', '.join(view.versions)}")
    else:
        click.echo(changes_text(view) if isinstance(view, CatalogChanges) else flags_text(view))


COMMAND = flags


def _find(
    engine: str, versions: tuple[str, ...], server: str | None, image: str | None, search: str
) -> KnownVersions | FlagsView | CatalogChanges:
    from stoker.config import find_paths
    from stoker.errors import WrongUse
    from stoker.flows import flags as flow

    if len(versions) + bool(server) + bool(image) > 2:
        raise WrongUse("two can be compared, not more", next_step="name two versions, or one and --server or --image")
    if not (versions or server or image or search):
        return flow.list_versions(engine)
    chosen = [flow.choose_catalog(engine, version) for version in versions]
    if server:
        chosen.append((flow.read_server_flags(find_paths(), engine, server), ""))
    if image:
        chosen.append((flow.read_flags_in_image(find_paths(), engine, image), ""))
    if not chosen:
        chosen.append(flow.choose_catalog(engine, None))
    if len(chosen) == 1:
        return flow.show_flags(*chosen[0], search)
    for _, note in chosen:
        if note:
            click.echo(click.style(note, fg="yellow"), err=True)
    return flow.show_changes(chosen[0][0], chosen[1][0], search)
