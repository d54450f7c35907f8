"""sparkrun's recipes: `recipe_version` 2, which is also what a recipe without one means."""

from __future__ import annotations

from pathlib import PurePath

from stoker.errors import StokerError
from stoker.plan.written.start import Start, read_text
from stoker.plan.written.table import Table, scalar_text
from stoker.plan.written.template import fill_repeatedly
from stoker.plan.written.tree import read_tree
from stoker.records import Recipe

# Read in sparkrun 0041b8f8 and later: what is not here is swept into `runtime_config`, so a typo passes.
KEYS = frozenset(
    [
        "benchmark",
        "builder",
        "builder_config",
        "capabilities",
        "cluster_config",
        "cluster_only",
        "command",
        "container",
        "containers",
        "defaults",
        "description",
        "distribution_config",
        "env",
        "executor",
        "executor_config",
        "include",
        "layout",
        "max_nodes",
        "metadata",
        "min_nodes",
        "mode",
        "model",
        "model_revision",
        "mods",
        "name",
        "overrides",
        "post_commands",
        "post_exec",
        "pre_exec",
        "readiness",
        "recipe_version",
        "runtime",
        "runtime_cache",
        "runtime_config",
        "runtime_version",
        "scheduler",
        "solo_only",
        "sparkrun_version",
        "stop_after_post",
        "unsupported_capabilities",
    ]
)
# What sparkrun's docker executor does where the recipe says nothing; `executor_config` overrides it key by key.
EXECUTOR = {
    "auto_remove": "True", "privileged": "True", "gpus": "all", "ipc": "host", "shm_size": "10.24gb", "network": "host",
}  # fmt: skip
OPTIONS = {
    "auto_remove": "rm", "restart_policy": "restart", "privileged": "privileged", "gpus": "gpus", "ipc": "ipc",
    "shm_size": "shm-size", "network": "network", "entrypoint": "entrypoint", "user": "user", "ulimit": "ulimit",
    "security_opt": "security-opt", "cap_add": "cap-add", "devices": "device",
}  # fmt: skip
PROGRAMS = {"sglang": ("sglang", "serve", "--model-path"), "llama-cpp": ("llama-server", "-hf")}
SPELLED = {
    "sglang": {"tensor_parallel": "tp-size", "pipeline_parallel": "pp-size", "gpu_memory_utilization": "mem-fraction-static",
               "max_model_len": "context-length", "max_num_seqs": "max-running-requests"},
    "llama-cpp": {"max_model_len": "ctx-size", "served_model_name": "alias", "temperature": "temp"},
    "vllm": {"tensor_parallel": "tensor-parallel-size", "pipeline_parallel": "pipeline-parallel-size",
             "data_parallel": "data-parallel-size"},
}  # fmt: skip
BESIDE = {
    "mods": "patches the container before serving",
    "pre_exec": "runs commands before serving",
    "post_exec": "runs commands once it serves",
    "post_commands": "runs commands on the machine that called it, once it serves",
    "builder": "may build the image itself",
    "containers": "chooses an image by machine",
    "include": "takes parts from other files",
    "overrides": "changes the recipe by machine",
    "runtime_config": "passes further settings to its runtime",
}


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a recipe of sparkrun, or the list of its registries."""
    if not isinstance(tree, dict):
        return False
    if "registries" in tree:
        return isinstance(tree["registries"], list)
    if scalar_text(tree.get("recipe_version")) == "1" or "schema_version" in tree or not isinstance(tree.get("model"), str):
        return False
    return bool({"runtime", "container", "command"} & tree.keys())


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launch of a recipe; raises StokerError where the file is none."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    if "registries" in top:
        raise StokerError(
            f"{name} lists where recipes lie, and holds none", next_step="give one of the recipes in the folders it names"
        )
    top.check_keys(KEYS, "a sparkrun recipe: sparkrun hands it to the runtime in silence")
    model = top.text("model")
    if model is None:
        raise StokerError(f"{name} names no model", why="sparkrun refuses a recipe without `model`")
    _say_version(top)
    values = {**top.table("defaults").pairs(), "model": model}
    command = _command(top, values)
    start = Start(
        name=PurePath(name).stem,
        source=name,
        line=tree.line("command") or tree.line("model"),
        model=model,
        image=top.text("container"),
        environment=_environment(top),
        container=_container(top.table("executor_config")),
    )
    _say_nodes(top, values)
    _say_beside(top)
    return (read_text(start, command, top.said),)


def _say_version(top: Table) -> None:
    version = top.text("recipe_version")
    if version not in (None, "2"):
        top.said.append(f"`recipe_version` {version} is unknown; the recipe was read as version 2")
    if "model_revision" in top:
        top.said.append(f"`model_revision` pins the model to {top.text('model_revision')}; the command need not say so")


def _command(top: Table, values: dict[str, str]) -> str:
    command = top.text("command")
    if command is None:
        top.said.append("no `command` is written: sparkrun makes it of `defaults`, and what it makes was guessed here")
        return _guessed(top.text("runtime") or "vllm", values)
    filled = fill_repeatedly(command.replace("\\ \n", "\\\n"), values)  # sparkrun repairs a space after the backslash
    top.said += filled.said
    return filled.text


def _guessed(runtime: str, values: dict[str, str]) -> str:
    spelled = SPELLED.get(runtime, SPELLED["vllm"])
    words = [*PROGRAMS.get(runtime, ("vllm", "serve")), values["model"]]
    for key, value in values.items():
        flag = f"--{spelled.get(key, key).replace('_', '-')}"
        if key != "model" and value != "False":
            words += [flag] if value == "True" else [flag, fill_repeatedly(value, values).text]
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _environment(top: Table) -> dict[str, str]:
    environment = top.table("env").pairs()
    for name, value in environment.items():
        if "$" in value:
            top.said.append(f"`env.{name}` is {value[:80]}, filled in on the machine that runs sparkrun")
    return environment


def _container(executor: Table) -> dict[str, tuple[str, ...]]:
    executor.check_keys({*OPTIONS, "gpu_access_mode", "memory_limit"}, "`executor_config`")
    given = {key: executor.texts(key) for key in OPTIONS if key in executor}
    if "restart_policy" in given:  # docker refuses both together, so sparkrun drops --rm
        given["auto_remove"] = ()
    chosen = {**{key: (value,) for key, value in EXECUTOR.items()}, **given}
    return {OPTIONS[key]: () if "True" in values else values for key, values in chosen.items() if _is_said(values)}


def _is_said(values: tuple[str, ...]) -> bool:
    return values not in ((), ("False",), ("",))


def _say_nodes(top: Table, values: dict[str, str]) -> None:
    sizes = [values.get(key, "1") for key in ("tensor_parallel", "pipeline_parallel")]
    gpus = int(sizes[0]) * int(sizes[1]) if all(size.isdecimal() and len(size) < 5 for size in sizes) else 1
    nodes = max(top.number("min_nodes") or 1, gpus)
    if nodes > 1 or top.is_on("cluster_only") or top.text("mode") == "cluster":
        how_many = f"{nodes} machines with one GPU each" if nodes > 1 else "several machines"
        top.said.append(f"it is written for {how_many}: this is the part of one of them")


def _say_beside(top: Table) -> None:
    for key, does in BESIDE.items():
        if top.values.get(key):
            names = ", ".join(top.texts(key)) if key == "mods" else ""
            top.said.append(f"`{key}` {does}{f' ({names})' if names else ''}; it was not read")
