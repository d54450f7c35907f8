"""Applies what findings say mends a launch; the words of the command that comes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from stoker.plan.written.containers import RUNNERS, split_entrypoint
from stoker.plan.written.docker_options import LISTS
from stoker.plan.written.flags import Span, long_name, spans_of
from stoker.plan.written.inside import RUNS_TEXT
from stoker.plan.written.prefixes import VARIABLE, program_name
from stoker.plan.written.programs import SHELLS, find_program
from stoker.plan.written.quoting import open_variables, quoted
from stoker.records import Catalog, Finding, Recipe, Scalar

RUN = ("docker", "run")


def mended(recipe: Recipe, findings: Iterable[Finding], catalog: Catalog | None = None) -> tuple[str, ...]:
    """Returns the words of the launch with each finding's `drop` and `use` applied, and everything else as written.

    A container's options come out by their long names; what a compose file or a quadlet says comes out as the command
    that does the same. Directives of a unit and grants are not part of a command: see the finding's `fix`.
    """
    words = list(recipe.words)
    environment = dict(recipe.environment)
    container = {name: list(values) for name, values in recipe.container.items()}
    for finding in findings:
        for name in finding.drop:
            words = _change(name, None, words, environment, container, catalog)
        for name, value in finding.use.items():
            words = _change(name, value, words, environment, container, catalog)
    runs_container = recipe.image is not None or _runner(recipe.program)[0] != ()
    if runs_container:
        return _container_command(recipe, words, environment, container)
    return _with_program(_with_variables(recipe.program, environment), words, recipe)


def _change(
    name: str,
    value: Scalar | None,
    words: list[str],
    environment: dict[str, str],
    container: dict[str, list[str]],
    catalog: Catalog | None,
) -> list[str]:
    """Sets what a rule's name stands for, or takes it away where the value is None or false; returns the engine's words."""
    is_gone = value is None or value is False
    if name.startswith("$"):
        environment.pop(name[1:], None)
        environment |= {} if is_gone else {name[1:]: say_value(value)}
    elif name.startswith("docker:"):
        _set_option(name.partition(":")[2], None if is_gone else value, container)
    elif name.startswith("-"):
        return without_flag(words, name, catalog) if is_gone else with_flag(words, name, value, catalog)
    return words


def _set_option(name: str, value: Scalar | None, container: dict[str, list[str]]) -> None:
    if value is None:
        container.pop(name, None)
    elif value is True:
        container[name] = []
    elif name in LISTS:
        key = say_value(value).partition("=")[0]
        kept = [text for text in container.get(name, []) if text.partition("=")[0] != key]
        container[name] = [*kept, say_value(value)]
    else:
        container[name] = [say_value(value)]


def say_value(value: Scalar | None) -> str:
    """Returns a value as command lines write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def without_flag(words: Sequence[str], name: str, catalog: Catalog | None = None) -> list[str]:
    """Returns the words without a flag and its values; one key of a JSON object is taken out of the object."""
    wanted = _long(name, catalog)
    kept = list(words)
    for span in reversed(spans_of(words, catalog)):
        if span.name == wanted or span.name.startswith(f"{wanted}."):
            del kept[span.start : span.end]
        elif (tree := _object_with(span, wanted)) is not None:
            tree.pop(wanted[len(span.name) + 1 :], None)
            kept[span.start : span.end] = _written(words[span.start], span, json.dumps(tree))
    return kept


def with_flag(words: Sequence[str], name: str, value: Scalar | None, catalog: Catalog | None = None) -> list[str]:
    """Returns the words with a flag set, where and as it was written before; a new one comes last."""
    wanted, text = _long(name, catalog), say_value(value)
    kept = list(words)
    for span in reversed(spans_of(words, catalog)):
        if span.name == wanted:
            kept[span.start : span.end] = [name] if value is True else _written(words[span.start], span, text)
            return kept
        if (tree := _object_with(span, wanted)) is not None:
            tree[wanted[len(span.name) + 1 :]] = value
            kept[span.start : span.end] = _written(words[span.start], span, json.dumps(tree))
            return kept
    return [*kept, name] if value is True else [*kept, name, text]


def _long(name: str, catalog: Catalog | None) -> str:
    found = spans_of([name], catalog)
    return found[0].name if found else long_name(name, {})[0]


def _object_with(span: Span, wanted: str) -> dict[str, object] | None:
    """Returns the JSON object of `--config '{...}'` where `--config.key` is wanted."""
    if len(span.values) != 1 or not wanted.startswith(f"{span.name}."):
        return None
    try:
        tree = json.loads(span.values[0])
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def _written(word: str, span: Span, text: str) -> list[str]:
    """Returns a flag with another value, spelled as it was: `--a=b` or `--a b`."""
    flag = word.partition("=")[0]
    return [f"{flag}={text}"] if span.inline else [flag, text]


def _runner(program: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parts a program into `docker run` with what is before it, and what runs in the container."""
    for place in range(1, len(program)):
        before = [program_name(word) for word in program[:place]]
        if program[place] in ("run", "create", "exec") and RUNNERS & set(before):
            return tuple(program[: place + 1]), tuple(program[place + 1 :])
    return (), tuple(program)


def _container_command(
    recipe: Recipe, words: list[str], environment: Mapping[str, str], container: Mapping[str, list[str]]
) -> tuple[str, ...]:
    runner, program = _runner(recipe.program)
    options = {**container, "env": _variables(environment, container.get("env", []))}
    inside = _with_program(program, words, recipe)
    entrypoint = split_entrypoint(container.get("entrypoint", ()), "")
    if entrypoint and inside[: len(entrypoint)] == entrypoint:
        inside = inside[len(entrypoint) :]
    elif entrypoint and program:  # the shell around the engine is gone
        options["entrypoint"], inside = [inside[0]], inside[1:]
    subject = recipe.image if recipe.image is not None else recipe.name
    return (*(runner or RUN), *_options(options), *([subject] if subject else []), *inside)


def _variables(environment: Mapping[str, str], written: Iterable[str]) -> list[str]:
    """Returns the values of `--env`: a variable that is handed on from outside stays its name alone."""
    handed_on = {text for text in written if "=" not in text}
    return [name if name in handed_on and value == f"${name}" else f"{name}={value}" for name, value in environment.items()]


def _options(container: Mapping[str, Iterable[str]]) -> list[str]:
    words: list[str] = []
    for name, values in container.items():
        given = list(values)
        words += [f"--{name}"] if not given and name != "env" else []
        words += [word for value in given for word in (f"--{name}", value)]
    return words


def _with_program(program: Sequence[str], words: Sequence[str], recipe: Recipe) -> tuple[str, ...]:
    """Puts the engine's words behind its program, also where that is the text of `bash -c`."""
    is_text = len(program) > 2 and RUNS_TEXT.fullmatch(program[-2]) and program_name(program[-3]) in SHELLS
    if is_text:
        inside = open_variables(recipe.unknown, "recipe")
        return (*program[:-1], " ".join([program[-1], *(quoted(word, inside) for word in words)]))
    return (*program, *words)


def _with_variables(program: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Puts variables where they reach the engine: where they stood, else in front, or behind a `sudo` that drops them."""
    left = dict(environment)
    words = [said for word in program if (said := _assigned(word, left)) is not None]
    added = [f"{name}={value}" for name, value in left.items()]
    if not added or not any(program_name(word) == "sudo" for word in words):
        return (*added, *words)
    place = next((place for place in range(len(words)) if find_program(words[place:])), 0)
    return (*words[:place], "env", *added, *words[place:])


def _assigned(word: str, left: dict[str, str]) -> str | None:
    """Returns a word of a program, an assignment with its new value, or None for a variable that was taken away."""
    found = VARIABLE.fullmatch(word)
    if found is None:
        return word
    return f"{found[1]}={left.pop(found[1])}" if found[1] in left else None
