"""From a wish to a plan: reads the models it names and chooses."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.box import LocalBox
from stoker.config import DEMO, Config, demo_model, with_whole_paths
from stoker.engines import Engine, find
from stoker.errors import Refused, WrongUse
from stoker.facts.machine import read_package_version
from stoker.facts.model import read_model
from stoker.plan.choose import choose_plan, name_for
from stoker.records import Plan, Wish

DEMO_MODEL = "stoker-demo"


def demo_wish() -> Wish:
    """Returns the wish for the bundled demo model."""
    return Wish(name=DEMO, model=str(demo_model()), served_name=DEMO_MODEL, reasoning="off")


def find_wish(target: str | None, config: Config) -> Wish:
    """Returns the wish that a word on the command line stands for: nothing (the demo), a service, or a path."""
    if target is None or (target == DEMO and DEMO not in config.services):
        return demo_wish()
    if target in config.services:
        return config.services[target]
    path = Path(target)
    if not path.exists() and "/" not in target and path.suffix != ".gguf":
        known = ", ".join(sorted({*config.services, DEMO}))
        raise WrongUse(
            f"there is no service called `{target}` and no file of that name",
            next_step=f"name a service ({known}), a GGUF file, or a folder that holds one",
        )
    stem = path.stem if path.suffix == ".gguf" else path.resolve().name
    return Wish(name=name_for(stem), model=str(path.absolute()))


def make_plan(wish: Wish) -> Plan:
    """Returns the plan for a wish; raises Refused or WrongUse where it cannot work."""
    _check_server(wish)
    version = _read_version(find(wish.engine), wish.server)
    model = read_model(Path(wish.model))
    draft_path = _draft_path(wish)
    draft = read_model(draft_path) if draft_path else None
    return choose_plan(wish, model, draft, version)


def _read_version(engine: Engine, server: str | None) -> str | None:
    argv = engine.version_argv(server)
    if argv is None:
        return read_package_version(engine.package) if engine.package else None
    printed = LocalBox().run(argv)
    return engine.parse_version(printed) if printed else None


def _draft_path(wish: Wish) -> Path | None:
    if wish.speculation != "draft":
        return None
    if wish.draft:
        return Path(wish.draft)
    return demo_model(draft=True) if Path(wish.model) == demo_model() else None


def _check_server(wish: Wish) -> None:
    if wish.server and not Path(wish.server).is_file():
        raise Refused(
            f"there is no engine program at {wish.server}",
            next_step="give the full path of a `llama-server`, or leave `server` out to use the embedded engine",
        )


def with_options(wish: Wish, options: dict[str, object]) -> Wish:
    """Returns the wish with the options that were given on the command line."""
    given = {name: value for name, value in options.items() if value is not None}
    return with_whole_paths(msgspec.structs.replace(wish, **given), Path.cwd())
