"""llama-swap's config.yaml: one launch for each of its models."""

from __future__ import annotations

import re
import shlex

from stoker.errors import StokerError
from stoker.plan.written.start import Start, read_words
from stoker.plan.written.swap_routing import routing_faults
from stoker.plan.written.table import Table, scalar_text
from stoker.plan.written.template import fill_macros
from stoker.plan.written.tree import Tree, read_tree
from stoker.records import Recipe

# Both lists from config-schema.json of 0bdb3720; llama-swap accepts other keys in silence.
KEYS = frozenset({
    "apiKeys", "captureBuffer", "globalTTL", "groups", "healthCheckTimeout", "hooks", "includeAliasesInList",
    "logLevel", "logTimeFormat", "logToStdout", "macros", "matrix", "metricsMaxInMemory", "models", "peers",
    "performance", "profiles", "routing", "selectors", "sendLoadingState", "startPort", "store", "ui",
    "unloadTimeout", "upstream",
})  # fmt: skip
MODEL_KEYS = frozenset({
    "aliases", "capabilities", "checkEndpoint", "cmd", "cmdStop", "compat", "concurrencyLimit", "description", "env",
    "filters", "macros", "metadata", "name", "proxy", "sendLoadingState", "timeouts", "ttl", "unlisted",
    "unloadTimeout", "useModelName",
})  # fmt: skip
# What concerns llama-swap's answering rather than the program it starts.
ITS_OWN = ("aliases", "checkEndpoint", "cmdStop", "concurrencyLimit", "filters", "ttl", "useModelName")
RESERVED = ("PORT", "PID", "MODEL_ID")
FIRST_PORT = 5800
LEAST_WAIT_S = 15


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a configuration of llama-swap."""
    models = tree.get("models") if isinstance(tree, dict) else None
    return isinstance(models, dict) and any(isinstance(model, dict) and "cmd" in model for model in models.values())


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns a launch for each model, in the order of the file; what concerns the whole file is said at the first."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    top.check_keys(KEYS | {"logRequests"}, "llama-swap's: it accepts it in silence")
    models = top.table("models")
    if not models.values:
        raise StokerError(f"{name} has no models", why="that is where llama-swap says what to start")
    _say_file(top)
    macros = _macros(top)
    ports = _ports(models, macros, top.number("startPort") or FIRST_PORT)
    found: list[Recipe] = []
    for model_id in models.values:
        model = Table(models.values[model_id], models.where(model_id), top.said if not found else [])
        found.append(_read_model(model, model_id, {**macros, **ports.get(model_id, {})}, tree, name))
    return tuple(found)


def _read_model(model: Table, model_id: str, macros: dict[str, str], tree: Tree, source: str) -> Recipe:
    model.check_keys(MODEL_KEYS, "a model of llama-swap: it accepts it in silence")
    filled = fill_macros(_command(model), _own_macros(model, model_id, macros))
    model.said += filled.said
    words = _split(filled.text, model)
    _say_port(model, words, macros)
    its_own = [key for key in ITS_OWN if key in model]
    if its_own:
        model.said.append(f"{', '.join(f'`{key}`' for key in its_own)}: for llama-swap itself, no part of the launch")
    start = Start(
        kind="llama-swap",
        name=model_id,
        source=source,
        line=tree.line(model.where("cmd")) or tree.line(model.path),
        environment=_environment(model),
    )
    return read_words(start, words, model.said)


def _command(model: Table) -> str:
    """Returns the command without the lines that are comments, which llama-swap takes out before all else."""
    command = model.text("cmd")
    if command is None:
        model.said.append(f"`{model.where('cmd')}` is missing, and llama-swap requires it")
    lines = (command or "").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def _split(command: str, model: Table) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(re.sub(r"\\\s*\n", " ", command)))
    except ValueError as problem:
        model.said.append(f"`{model.where('cmd')}` cannot be split into words: {problem}")
        return tuple(command.split())


def _go_text(value: object) -> str | None:
    """Returns a scalar as Go prints it."""
    return str(value).lower() if isinstance(value, bool) else scalar_text(value)


def _macros(table: Table) -> dict[str, str]:
    declared = table.table("macros").values
    for name in declared:
        if name in RESERVED or not re.fullmatch(r"[\w-]{1,63}", name, re.ASCII):
            table.said.append(f"`{name[:80]}` cannot be a macro's name: llama-swap refuses the file")
    texts = {name: _go_text(value) for name, value in declared.items() if name not in RESERVED}
    return {name: text for name, text in texts.items() if text is not None}


def _own_macros(model: Table, model_id: str, macros: dict[str, str]) -> dict[str, str]:
    """Returns the macros in the order in which llama-swap declares them; the port is filled in last of all."""
    port = {"PORT": macros["PORT"]} if "PORT" in macros else {}
    return {**port, "MODEL_ID": model_id, **{key: macros[key] for key in macros if key != "PORT"}, **_macros(model)}


def _ports(models: Table, macros: dict[str, str], first: int) -> dict[str, dict[str, str]]:
    """Returns the ports: counted up over the models whose command asks for one, by name and not by place."""
    quiet = {model_id: Table(value, "", []) for model_id, value in sorted(models.values.items())}
    asking = [
        model_id
        for model_id, model in quiet.items()
        if "${PORT}" in fill_macros(_command(model), _own_macros(model, model_id, macros)).text
    ]
    return {model_id: {"PORT": str(first + place)} for place, model_id in enumerate(asking)}


def _environment(model: Table) -> dict[str, str]:
    pairs = [text.partition("=") for text in model.texts("env")]
    model.said += [f"`{model.where('env')}` has {name[:40]!r} without a value" for name, equals, _ in pairs if not equals]
    return {name: value for name, equals, value in pairs if equals}


def _say_port(model: Table, words: tuple[str, ...], macros: dict[str, str]) -> None:
    proxy = model.text("proxy")
    if proxy is None and "PORT" not in macros:
        model.said.append(
            "`cmd` does not use ${PORT} and there is no `proxy`: llama-swap does not know where the engine listens"
        )
    elif proxy and "${PORT}" in proxy and "PORT" not in macros:
        model.said.append("`proxy` uses ${PORT} and `cmd` does not: llama-swap refuses the file")
    port = re.search(r":(\d+)", proxy or "")
    if port and not any(port[1] in word for word in words):
        model.said.append(f"`proxy` is {proxy}, and the command says another port")


def _say_file(top: Table) -> None:
    if "logRequests" in top:
        top.said.append("`logRequests` is read by nothing any more")
    wait_s = top.number("healthCheckTimeout")
    if wait_s is not None and wait_s < LEAST_WAIT_S:
        top.said.append(f"`healthCheckTimeout` is {wait_s}: llama-swap makes it {LEAST_WAIT_S} in silence")
    plain = [key for key in top.texts("apiKeys") if not key.startswith("${env.")]
    if plain:
        top.said.append(f"{len(plain)} of `apiKeys` stand in the file as plain text; write ${{env.NAME}} instead")
    top.said += routing_faults(top)
