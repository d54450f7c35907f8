"""Makes services of launches that somebody wrote down. Pure; nothing is looked up, and no secret is copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from stoker.engines import names
from stoker.plan.importing import fields
from stoker.plan.importing.imported import Imported
from stoker.plan.importing.places import Places
from stoker.plan.importing.toml import Value
from stoker.plan.secrets import hide, is_secret_flag, is_secret_variable
from stoker.plan.wishes import name_for
from stoker.records import Catalog, Recipe

MOST_NAMES = 8
LONGEST_NAME = 60  # leaves room for a number
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OWN_KEY = "Stoker makes the engine's key itself, and clients use the gateway's"


def services_of(recipes: Iterable[Recipe], catalogs: Mapping[str, Catalog]) -> tuple[Imported, ...]:
    """Returns a service for each launch; their names are valid and differ.

    The catalogs, by engine, tell short flags' long names and switches from flags with a value.
    """
    taken = _Names()
    return tuple(_service(recipe, taken.take(_base_name(recipe)), catalogs.get(recipe.engine or "")) for recipe in recipes)


def _base_name(recipe: Recipe) -> str:
    stem = recipe.name or (recipe.model or "").rstrip("/").rpartition("/")[2] or PurePath(recipe.source).stem
    return name_for(stem)


class _Names:
    """Gives out names, each once; remembers where counting stopped, since a file may hold thousands of one launch."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Returns the name, with a number behind it where it is taken."""
        stem = name[:LONGEST_NAME].rstrip("-._")
        found = name
        while found in self._taken:
            number = self._next[stem] = self._next.get(stem, 1) + 1
            found = f"{stem[: LONGEST_NAME + 2 - len(str(number))]}-{number}"
        self._taken.add(found)
        return found


def _service(recipe: Recipe, name: str, catalog: Catalog | None) -> Imported:
    flags = fields.read_flags(recipe.words, catalog)
    left: list[str] = []
    notes = list(recipe.unknown)
    secrets = _take_secrets(recipe, flags, left)
    places = Places(recipe, flags)
    places.move(flags)
    keys = _keys(recipe, name, flags, left, notes) if _is_startable(recipe) else {}
    if keys:
        keys |= {"model": places.outside(recipe.model or ""), **(places.mounts(flags) if recipe.image else {})}
        notes += places.notes()
    if not keys:
        notes.insert(0, _why_none(recipe))
    _say_short(flags, left)
    environment = {key: value for key, value in recipe.environment.items() if not is_secret_variable(key, value)}
    _say_container(recipe, left)
    return Imported(
        name=name,
        keys=keys,
        flags={_bare(flag): fields.as_value(values) for flag, values in flags.items()} if keys else {},
        environment=environment if keys else {},
        not_carried_over=tuple(dict.fromkeys(hide(sentence, secrets) for sentence in left)),
        notes=tuple(dict.fromkeys(hide(sentence, secrets) for sentence in notes)),
        source=recipe.source,
        line=recipe.line,
    )


def _say_short(flags: fields.Flags, left: list[str]) -> None:
    short = [flag for flag in flags if not flag.startswith("--")]
    left += [f"{' '.join((flag, *flags.pop(flag)))[:80]}: a service names flags by their long names" for flag in short]


def _is_startable(recipe: Recipe) -> bool:
    return recipe.engine in names() and bool(recipe.model) and bool(recipe.program or recipe.words)


def _why_none(recipe: Recipe) -> str:
    if recipe.grants:
        return "it grants rights, and starts nothing"
    if not recipe.program and not recipe.words:
        return "it starts nothing"
    if recipe.engine in names():
        return "it names no model that could be served"
    return f"`{recipe.engine or ' '.join(recipe.program)[:80]}` is no engine that Stoker starts"


def _keys(recipe: Recipe, name: str, flags: fields.Flags, left: list[str], notes: list[str]) -> dict[str, Value]:
    engine = recipe.engine or ""
    for flag in fields.MODEL_FLAGS:
        flags.pop(flag, None)
    host = fields.last_value(flags, "--host")
    flags.pop("--host", None)
    if host and host not in LOOPBACK:
        left.append(f"--host {host}: engines listen on this machine alone, and others reach them through the gateway")
    keys: dict[str, Value] = {"engine": engine, "model": recipe.model or ""}
    keys |= _runner(recipe)
    keys |= _served_name(recipe, name, flags, left)
    keys |= fields.take_fields(flags, engine)
    keys |= _port(recipe, keys)
    keys |= _slots(keys, engine, notes)
    keys |= fields.take_speculation(flags, engine)
    if any(flag.startswith("--spec") for flag in flags):
        notes.append("speculation stays in the flags as it was written, and nothing is added to it")
        if keys["speculation"] == "off":  # said in both places, nobody would know which of them counts
            del keys["speculation"]
    return keys


def _runner(recipe: Recipe) -> dict[str, Value]:
    """Returns where the engine comes from: an image, or a program that is not just found on PATH."""
    if recipe.image:
        return {"image": recipe.image}
    program = recipe.program
    if not program or "/" not in program[0]:
        return {}
    return {"server": program[0]} if recipe.engine == "llamacpp" else {"program": program}


def _served_name(recipe: Recipe, name: str, flags: fields.Flags, left: list[str]) -> dict[str, Value]:
    """Returns the name that clients know: as given, llama-swap's id, or the model's own, which vLLM and SGLang answer to."""
    given = flags.pop("--served-model-name", ()) or flags.pop("--alias", ())
    if len(given) > 1:
        left.append(f"further names of the model: {', '.join(given[1:])}")
    served = _known_name(recipe, given) or ""
    return {"served_name": served} if served != name and served.isprintable() and served.strip() else {}


def _known_name(recipe: Recipe, given: tuple[str, ...]) -> str | None:
    if recipe.kind == "llama-swap":
        return recipe.name
    if given:
        return given[0]
    return None if recipe.engine == "llamacpp" else recipe.model


def _port(recipe: Recipe, keys: dict[str, Value]) -> dict[str, Value]:
    """Returns the port on this machine where the container's is published under another."""
    inside = str(keys.get("port", ""))
    for published in (*recipe.container.get("publish", ()), *recipe.container.get("p", ())):
        outside, _, target = published.rpartition(":")
        port = fields.whole(1, 65535)(outside.rpartition(":")[2])
        if port is not None and inside in ("", target.partition("/")[0]):
            return {"port": port}
    return {}


def _slots(keys: dict[str, Value], engine: str, notes: list[str]) -> dict[str, Value]:
    """Returns llama.cpp's context for each request: its --ctx-size is shared by all slots."""
    total, slots = keys.get("context"), keys.get("parallel")
    if engine != "llamacpp" or not isinstance(total, int):
        return {}
    if not isinstance(slots, int):
        notes.append("the number of slots was left to llama.cpp, and all share the context: one slot is written here")
        return {"parallel": 1}
    return {"context": max(64, total // slots)}


def _take_secrets(recipe: Recipe, flags: fields.Flags, left: list[str]) -> frozenset[str]:
    """Takes the secrets out of the flags, and returns all of the launch's."""
    found: set[str] = set()
    for flag in [flag for flag, values in flags.items() if is_secret_flag(flag, values)]:
        found |= set(flags.pop(flag))
        where = OWN_KEY if flag == "--api-key" else "set it in the environment of `stoker serve`"
        left.append(f"the secret of {flag}: {where}")
    for name, value in (recipe.environment | recipe.lost_environment).items():
        if is_secret_variable(name, value):
            found.add(value)
            where = (
                OWN_KEY if name.endswith("API_KEY") else f"put it into the environment of `stoker serve`: export {name}=..."
            )
            left.append(f"the secret {name}: {where}")
    return frozenset(found)


def _say_container(recipe: Recipe, left: list[str]) -> None:
    options = [f"--{name}" for name in recipe.container if name not in ("env", "volume", "publish", "e", "v", "p")]
    if options:
        left.append(f"docker's {_some(options)}: Stoker chooses how its containers run")
    if recipe.unit:
        left.append(f"systemd's {_some(list(recipe.unit))}: `stoker install` writes the unit")
    if recipe.lost_environment:
        left.append(f"{', '.join(recipe.lost_environment)}: set where the engine never sees it")


def _some(options: list[str]) -> str:
    more = f" and {len(options) - MOST_NAMES} more" if len(options) > MOST_NAMES else ""
    return ", ".join(options[:MOST_NAMES]) + more


def _bare(flag: str) -> str:
    return flag.lstrip("-")
