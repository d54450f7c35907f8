"""`stoker roll`: the replicas of a model changed one after another, while the others answer."""

from __future__ import annotations

import click

HELP = """Bring the replicas of a model to what each box's stoker.toml says now, one after another.

TARGET is a model, or a service's name. Each box lets the requests of its replica end, starts the new plan and proves it;
only then does the next one change. Meanwhile the others answer, and no request is lost. Where one does not come up it goes
back to its old plan, the rest stay as they are, and the exit code is 1. Refused where only one replica is READY. Needs links
made with `stoker boxes code --act`.

\b
Example:
  stoker roll qwen3-32b
  stoker roll coder --on spark-b,spark-c     these boxes alone, in this order
"""


@click.command(help=HELP, short_help="Change the replicas of a model one after another.")
@click.argument("target")
@click.option("--on", "boxes", default="", help="Boxes, with commas between them; else all linked ones, and this one last.")
@click.option("--allow-gap", is_flag=True, help="Also where nobody answers meanwhile.")
@click.option("--json", "as_json", is_flag=True, help="Print what became of each as JSON.")
def roll(target: str, boxes: str, allow_gap: bool, as_json: bool) -> None:
    """Changes one replica after another, and says what became of each."""
    from stoker.cli.show import say_json
    from stoker.config import find_paths
    from stoker.errors import StokerError
    from stoker.flows.boxes import rolling
    from stoker.flows.targets import read_running

    paths = find_paths()
    daemon = read_running(paths)
    ready = rolling.find_places(paths, daemon, target)
    places = rolling.choose_places(paths, ready, [name for name in boxes.split(",") if name], daemon.boxes().name)
    if not allow_gap:
        rolling.check_no_gap(ready)
    done = []
    for one in rolling.roll(daemon, places, lambda text: None if as_json else click.echo(text)):
        done.append(one)
        if not as_json:
            click.echo(f"{places[len(done) - 1].name}: {one.outcome}, plan {one.after or 'unknown'}")
    left = [place.name for place in places[len(done) :]]
    if as_json:
        say_json(done)
    if done[-1].outcome == "failed":
        changed = [place.name for place, one in zip(places, done, strict=False) if one.outcome == "changed"]
        told = f"changed: {', '.join(changed) or 'none'}; left as they were: {', '.join(left) or 'none'}"
        raise StokerError(
            f"{places[len(done) - 1].name} did not take its new plan ({told})", why=done[-1].why,
            next_step="mend what its stoker.toml says, and roll again: those that are changed stay",
        )  # fmt: skip


COMMAND = roll
