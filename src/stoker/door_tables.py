"""What `stoker.toml` says of the gateway's door: `[alias]`, and the keys of a service's table that reach no engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from stoker.errors import WrongUse
from stoker.records import DoorSettings, IdleSettings, Wish
from stoker.tables import check_keys, check_name, parse_table

LEAST_BOXES = 2
DOOR_KEYS = frozenset(DoorSettings.__struct_fields__)


def parse_service(table: Mapping[str, Any], name: str, source: str) -> tuple[Wish, DoorSettings]:
    """Turns a `[service.NAME]` table into what its engine is to be, and what the door does with its requests."""
    path = f"service.{check_name(name, source)}"
    check_keys(table, (set(Wish.__struct_fields__) | DOOR_KEYS) - {"name"}, path, source)
    door = {key: value for key, value in table.items() if key in DOOR_KEYS}
    wish = {key: value for key, value in table.items() if key not in DOOR_KEYS}
    return check_boxes(parse_table(wish, Wish, path, source, name=name), source), parse_table(
        door, DoorSettings, path, source
    )


def _check_address(text: str, what: str) -> None:
    try:
        IPv4Address(text)
    except ValueError as problem:
        raise WrongUse(
            f"{what} is `{text}`, which is no IPv4 address", why=str(problem),
            next_step='say where the head is on the cable, such as "192.168.100.11"; `stoker plan` prints it',
        ) from problem  # fmt: skip


def check_boxes(wish: Wish, source: str) -> Wish:
    """Returns the wish; raises WrongUse where the boxes of a service could not serve one model together."""
    path = f"service.{wish.name}"
    if not wish.boxes:
        apart = {"split": wish.split != "auto", "executor": wish.executor != "mp", "head_address": wish.head_address}
        said = next((key for key, is_said in apart.items() if is_said), None)
        if said is not None:
            raise WrongUse(
                f"{source}: `{path}.{said}` is for a model that boxes share, and `{path}.boxes` names none",
                next_step='name them, the head first: boxes = ["a", "b"]',
            )
        return wish
    if wish.head_address is not None:
        _check_address(wish.head_address, f"{source}: `{path}.head_address`")
    twice = next((name for name, count in Counter(wish.boxes).items() if count > 1 or not name.strip()), None)
    if len(wish.boxes) < LEAST_BOXES or twice is not None:
        raise WrongUse(
            f"{source}: `{path}.boxes` names " + ("one box" if twice is None else f"`{twice}` more than once, or nothing"),
            why="a model is spread over boxes that differ, each with one GPU",
            next_step="name two or more, the head first, or leave `boxes` out",
        )
    if wish.engine == "command":
        raise WrongUse(
            f'{source}: `{path}` has engine = "command", and no plan is known to spread a program over boxes',
            next_step="leave `boxes` out",
        )
    return wish


def model_of(wish: Wish) -> str | None:
    """Returns the name that clients ask for; None for a command that answers no model's requests."""
    return wish.served_name or (None if wish.engine == "command" else wish.name)


def check_doors(wishes: Mapping[str, Wish], doors: Mapping[str, DoorSettings], idle: IdleSettings, source: str) -> None:
    """Raises WrongUse where a request would not say which service to start, or one would come back only to be stopped."""
    names = Counter(model_of(wishes[name]) for name, door in doors.items() if door.on_demand)
    if twice := next((model for model, count in names.items() if model and count > 1), None):
        raise WrongUse(
            f"{source}: two services with `on_demand` answer as `{twice}`",
            why="a request names a model, and one name must mean one service",
            next_step="give one of them another `served_name`, or take `on_demand` out of it",
        )
    default = idle.default_service
    if default is not None and doors.get(default, DoorSettings()).idle_s is not None:
        raise WrongUse(
            f"{source}: `service.{default}.idle_s` would stop the service that `idle.default_service` brings back",
            next_step="leave one of the two out",
        )


def parse_aliases(table: object, wishes: Mapping[str, Wish], source: str) -> dict[str, str]:
    """Returns the `[alias]` table, checked: other name -> a model's or service's, or `*` for the one that is READY."""
    if not isinstance(table, dict):
        raise WrongUse(f"{source}: `alias` should be a table", next_step="write [alias] and lines such as coder = 'qwen3'")
    for name, target in table.items():
        _check_alias(name, target, source)
        _check_chain(name, target, table, source)
        _check_clash(name, target, wishes, source)
    return dict(table)


def _check_alias(name: str, target: object, source: str) -> None:
    for text in (name, target):
        if not isinstance(text, str) or not text.strip() or not text.isprintable():
            raise WrongUse(
                f"{source}: an alias is {text!r} - at `alias.{name}`",
                next_step="write another name and the model's (or service's) that it stands for, in printable characters",
            )


def _check_chain(name: str, target: str, aliases: Mapping[str, str], source: str) -> None:
    if target in aliases and target != name:
        raise WrongUse(
            f"{source}: the alias `{name}` stands for `{target}`, which is an alias itself",
            why="who answers should be seen at one look",
            next_step=f"let `{name}` stand for `{aliases[target]}`",
        )


def _check_clash(name: str, target: str, wishes: Mapping[str, Wish], source: str) -> None:
    """An alias may be the name of its own service: `coder = "qwen3-coder"` beside [service.coder] means one thing."""
    models = {model_of(wish): wish.name for wish in wishes.values()}
    if name in models:
        raise WrongUse(
            f"{source}: the alias `{name}` is the name of a model already, that of `service.{models[name]}`",
            why="one name must mean one model",
            next_step="take another name for one of the two",
        )
    if name in wishes and models.get(target, target) != name:
        raise WrongUse(
            f"{source}: the alias `{name}` stands for `{target}`, but there is a service called `{name}`",
            next_step="take another name for one of the two",
        )
    if target in wishes and models.get(target, target) != target:
        raise WrongUse(
            f"{source}: `{target}` is a service, and the model of `service.{models[target]}` - at `alias.{name}`",
            next_step="name what only one of the two is called",
        )
