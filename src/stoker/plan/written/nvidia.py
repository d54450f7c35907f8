"""Recipes of NVIDIA's local-ai-inference-recipes: `schema_version` 3 and 4."""

from __future__ import annotations

from pathlib import PurePath

import msgspec

from stoker.errors import Refused, StokerError
from stoker.plan.written.start import Start, read_text
from stoker.plan.written.table import Table
from stoker.plan.written.template import blanks, mask_blanks, unmask_blanks
from stoker.plan.written.tree import Tree, read_tree
from stoker.records import Recipe

KEYS = frozenset({
    "schema_version", "title", "model", "hardware", "platform", "backend", "backend_version", "backend_min_version",
    "status", "variant", "limitations", "prerequisites", "precision", "checkpoint", "concurrency", "topology",
    "sampling", "security", "runtime", "serve", "notes",
})  # fmt: skip
KEYS_OF = {"3": frozenset({"mtp", "validation"}), "4": frozenset({"min_vidmem_gb", "spec_dec"})}
ONE_SPARK = "dgx-spark"


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is one of NVIDIA's recipes, or the measurements beside one."""
    if not isinstance(tree, dict) or "schema_version" not in tree:
        return False
    return {"serve", "hardware"} <= tree.keys() or {"recipe_sha256", "profiles"} <= tree.keys()


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launch of a recipe; raises Refused for Windows and StokerError where the file holds no launch."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    if "profiles" in top and "serve" not in top:
        raise StokerError(f"{name} holds measurements and no launch", next_step="give the recipe.yaml that lies beside it")
    _refuse_windows(top, name)
    serve = top.table("serve")
    command = serve.text("command")
    if command is None:
        raise StokerError(f"{name} has no serve.command", why="that is where NVIDIA's recipes say how to start the engine")
    _say_version(top)
    recipe = _join(top, tree, name, command)
    _say_setting(top)
    _say_serve(serve, recipe)
    return (msgspec.structs.replace(recipe, unknown=tuple(dict.fromkeys((*recipe.unknown, *top.said)))),)


def _refuse_windows(top: Table, name: str) -> None:
    if top.table("platform").text("os") == "windows":
        raise Refused(
            f"{name} is written for Windows",
            why="its commands are PowerShell, which is neither read here nor runs on the machines that Stoker tends",
            next_step="give the recipe.yaml of the `linux` folder beside it",
        )


def _say_version(top: Table) -> None:
    version = top.text("schema_version") or ""
    if version not in KEYS_OF:
        top.said.append(f"`schema_version` {version[:40]} is unknown; it was read as version {max(KEYS_OF)}")
    top.check_keys(KEYS | KEYS_OF.get(version, frozenset().union(*KEYS_OF.values())), f"NVIDIA's recipes, version {version}")


def _join(top: Table, tree: Tree, name: str, command: str) -> Recipe:
    """Returns one launch of the two steps: setup opens a shell in a container, and serve is typed there."""
    runtime = top.table("runtime")
    script = f"{runtime.text('setup_command') or ''}\n{command}"
    image = runtime.text("image")
    start = Start(
        name=top.text("title") or PurePath(name).stem,
        source=name,
        line=tree.line("serve.command"),
        model=top.table("checkpoint").text("target_label"),
        image=image,
    )
    top.said += blanks(script)
    recipe = unmask_blanks(read_text(start, mask_blanks(script), ()))
    if image and image != recipe.image:
        top.said.append(f"`runtime.image` is {image}, and the setup starts {recipe.image}")
    # The shell is what setup wants; joined, the engine itself is what the container runs.
    container = {key: values for key, values in recipe.container.items() if key != "entrypoint"}
    return msgspec.structs.replace(recipe, container=container)


def _say_setting(top: Table) -> None:
    hardware, topology = top.text("hardware"), top.table("topology")
    nodes = topology.number("node_count") or 1
    if hardware != ONE_SPARK:
        top.said.append(f"it is written for {hardware}, not for one DGX Spark")
    if nodes > 1:
        top.said.append(f"it is written for {nodes} machines: this is the part of the first")
    for key in ("prerequisites", "limitations"):
        top.said += [f"its authors say under `{key}`: {sentence}" for sentence in top.texts(key)]


def _say_serve(serve: Table, recipe: Recipe) -> None:
    for other in serve.tables("additional_commands"):
        label, target = other.text("label") or other.text("id"), other.text("target")
        serve.said.append(f"`{label}` is to be run as well, on {target}; it was not read")
    port = serve.text("port")
    if port and "--port" in recipe.words and port not in recipe.words:
        serve.said.append(f"`serve.port` is {port}, and the command gives another")
