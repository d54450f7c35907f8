"""`stoker fetch`: a model and its draft, from the hub onto this machine, whole and verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from stoker.box import LocalBox
from stoker.config import Config, Paths, is_hub_name
from stoker.errors import Refused, StokerError, WrongUse
from stoker.facts.model.hub import find_cache, split_quantisation
from stoker.fetch.choose import GGUF, PROJECTOR, Choice, choose_files
from stoker.fetch.listing import DEFAULT_REVISION, Listing
from stoker.fetch.meter import Meter, Progress
from stoker.fetch.patience import Patience
from stoker.fetch.places import CachePlace, FolderPlace, Place
from stoker.fetch.room import Need, check_room, read_free, read_need
from stoker.fetch.team import Team
from stoker.fetch.transfer import Job
from stoker.fetch.wire import Wire, read_token
from stoker.flows.checking import check_model
from stoker.flows.completing import Consent, complete
from stoker.flows.images import fetch_image
from stoker.records import Fetched, FetchSettings, FetchView, Wish
from stoker.written_paths import expand_home

Role = Literal["model", "draft"]


class Target(NamedTuple):
    """One repository to fetch."""

    role: Role
    repository: str
    quantisation: str | None
    revision: str


class Order(NamedTuple):
    """What to fetch and how; `to` is a folder instead of the cache, `completed` where completed models go.

    `image` is the container image of a service, which is fetched by the container engine.
    """

    targets: tuple[Target, ...]
    settings: FetchSettings
    token: str | None
    cache: Path
    completed: Path
    to: Path | None = None
    everything: bool = False
    is_dry_run: bool = False
    image: str | None = None


class Desk(NamedTuple):
    """How a fetch talks to the person: sentences, progress, and a question that None answers where nobody can be asked."""

    tell: Callable[[str], None]
    show: Callable[[Progress], None]
    ask: Consent
    tick_s: float = 0.5


class Part(NamedTuple):
    """One repository, what is wanted of it, and where it goes."""

    target: Target
    listing: Listing
    choice: Choice
    place: Place
    need: Need


def find_targets(
    model: str | None, service: str | None, draft: str | None, revision: str | None, config: Config
) -> tuple[Target, ...]:
    """Returns what the words stand for: a service's model and draft, or a hub name; raises WrongUse where it is neither."""
    wish = _find_service(model, service, config)
    words = [("model", wish.model if wish else model), ("draft", draft or (wish.draft if wish else None))]
    from_hub = [(role, word) for role, word in words if word and is_hub_name(word, Path.cwd())]
    if not from_hub and wish is not None and wish.image:
        return ()
    if not from_hub:
        named = next((word for _, word in words if word), "")
        is_here = Path(named).exists()
        raise WrongUse(
            f"there is nothing to fetch: {named} is no hub name",
            why="a folder of that name lies here" if is_here else "a hub name is `org/name` or `org/name:QUANT`",
            next_step="name a hub repository, or a service whose model or draft is one",
        )
    return tuple(_target(role, word, revision if role == "model" else None) for role, word in from_hub)  # type: ignore[arg-type]


def _find_service(model: str | None, service: str | None, config: Config) -> Wish | None:
    name = service or model or ""
    if name in config.services:
        return config.services[name]
    if service is not None or "/" not in name:
        known = ", ".join(sorted(config.services))
        or_service = f", or a service of stoker.toml: {known}" if known else ""
        raise WrongUse(f"there is no service called `{name}`", next_step=f"name a hub repository `org/name`{or_service}")
    return None


def _target(role: Role, word: str, revision: str | None) -> Target:
    repository, quantisation = split_quantisation(word)
    return Target(role, repository, quantisation, revision or DEFAULT_REVISION)


def make_order(
    config: Config, paths: Paths, *, model: str | None, service: str | None, draft: str | None, revision: str | None,
    settings: Mapping[str, object],
) -> Order:  # fmt: skip
    """Returns the order for words on a command line, over what `stoker.toml` says."""
    given = {name: str(value) if isinstance(value, Path) else value for name, value in settings.items() if value is not None}
    chosen = convert_settings({**msgspec.structs.asdict(config.fetch), **given})
    cache = find_cache(os.environ)
    if cache is None:
        raise WrongUse("nobody says where the hub's cache is", next_step="set HF_HOME, or HOME")
    targets = find_targets(model, service, draft, revision, config)
    wish = config.services.get(service or model or "")
    folder = Path.cwd() if "token_file" in given else paths.config.parent
    return Order(targets, chosen, find_token(chosen, folder), cache, paths.completed, image=wish.image if wish else None)


def convert_settings(values: Mapping[str, object]) -> FetchSettings:
    """Returns settings that were checked as those of `stoker.toml` are."""
    try:
        return msgspec.convert(values, FetchSettings)
    except msgspec.ValidationError as problem:
        raise WrongUse(f"that cannot be fetched: {problem}", next_step="see `stoker fetch --help`") from problem


def find_token(settings: FetchSettings, folder: Path) -> str | None:
    """Returns the token from the file that the settings name, else from where the hub's own tools keep it."""
    if settings.token_file is None:
        return read_token()
    file = folder / expand_home(settings.token_file)
    try:
        token = file.read_text().strip()
    except (OSError, ValueError) as problem:
        raise WrongUse(
            f"the token's file {file} cannot be read", why=getattr(problem, "strerror", "") or "it is no text"
        ) from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise WrongUse(f"{file} holds no token", why="a token is one word", next_step="write the token alone into it")
    return token


def fetch(order: Order, desk: Desk) -> FetchView:
    """Fetches everything that was ordered; what came stays on disk whatever happens, and is taken up the next time."""
    view = _fetch_models(order, desk) if order.targets else FetchView((), (), 0, None, "", order.is_dry_run)
    if order.image is None:
        return view
    fetch_image(order.image, order.is_dry_run, desk.tell)
    return msgspec.structs.replace(view, image=order.image)


def _fetch_models(order: Order, desk: Desk) -> FetchView:
    patience = Patience(order.settings.patience_s, desk.tell)
    wire = Wire(order.settings, order.token, patience)
    if wire.ipv4_because:
        desk.tell(f"IPv4 alone: {wire.ipv4_because}")
    parts = tuple(_plan(order, wire, target) for target in order.targets)
    more_bytes = sum(part.need.more_bytes for part in parts)
    folder = order.to or order.cache
    free_bytes = read_free(LocalBox(), folder)
    view = FetchView((), (), more_bytes, free_bytes, str(folder), order.is_dry_run)
    if order.is_dry_run:
        return msgspec.structs.replace(view, models=tuple(_fetched(part, part.place.folder) for part in parts))
    check_room(folder, more_bytes, free_bytes, order.settings.keep_free_bytes)
    _run(order, desk, wire, parts)
    found = [_finish(order, desk, wire, part) for part in parts]
    notes = tuple(note for _, more in found for note in more)
    return msgspec.structs.replace(view, models=tuple(one for one, _ in found), notes=notes)


def _plan(order: Order, wire: Wire, target: Target) -> Part:
    listing = wire.list_files(target.repository, target.revision)
    choice = choose_files(target.repository, listing.files, target.quantisation, order.everything)
    place = _place(order, listing)
    return Part(target, listing, choice, place, read_need(place, choice.files))


def _place(order: Order, listing: Listing) -> Place:
    if order.to is None:
        return CachePlace(order.cache, listing)
    several = len(order.targets) > 1
    place = FolderPlace(order.to / listing.repository.partition("/")[2] if several else order.to, listing)
    place.check_ours()
    return place


def _run(order: Order, desk: Desk, wire: Wire, parts: tuple[Part, ...]) -> None:
    meter = Meter(sum(part.need.all_bytes for part in parts), sum(part.need.all_bytes for part in parts))
    meter.found(sum(part.need.there_bytes for part in parts))
    tasks = [(Job(wire, part.listing, part.place, meter), file) for part in parts for file in part.choice.files]
    tasks.sort(key=lambda task: task[1].size_bytes, reverse=True)  # the longest first, so that none is left over alone
    team = Team(tasks, order.settings.workers, wire.patience)
    try:
        team.run(lambda: desk.show(meter.read()), desk.tick_s)
    except KeyboardInterrupt:
        raise StokerError(
            "stopped as you asked; what came is kept", next_step="run the same command again, it goes on where it stopped"
        ) from None
    desk.show(meter.read())
    for part in parts:
        part.place.finish()


def _finish(order: Order, desk: Desk, wire: Wire, part: Part) -> tuple[Fetched, list[str]]:
    fetched, root = _fetched(part, _loadable(part)), order.completed if order.to is None else None
    try:
        check_model(Path(fetched.path))
    except Refused as problem:  # it came as the hub has it, and nothing loads it
        return fetched, [str(problem)]
    done, notes = complete(wire, part.listing, Path(fetched.path), root, desk.ask)
    loads_in = check_model(done.path).loads_in
    return msgspec.structs.replace(
        fetched, path=str(done.path), completed=done.completed, lacks=done.lacks, loads_in=loads_in
    ), notes


def _loadable(part: Part) -> Path:
    """Returns what an engine loads: a GGUF by its own name, since other quantisations may lie beside it; else the folder."""
    names = sorted(file.name for file in part.choice.files if file.name.endswith(GGUF))
    models = [name for name in names if not Path(name).name.startswith(PROJECTOR)]
    only_gguf = models and not any(file.name.endswith(".safetensors") for file in part.choice.files)
    return part.place.folder / models[0] if only_gguf else part.place.folder


def _fetched(part: Part, path: Path) -> Fetched:
    return Fetched(
        role=part.target.role, repository=part.target.repository, asked=part.listing.asked, revision=part.listing.revision,
        path=str(path), files=len(part.choice.files), size_bytes=part.need.all_bytes, fetched_bytes=part.need.more_bytes,
        left_out=part.choice.left_out,
    )  # fmt: skip
