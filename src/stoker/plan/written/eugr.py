"""Recipes of eugr's spark-vllm-docker: `recipe_version` 1."""

from __future__ import annotations

import re

from stoker.errors import StokerError
from stoker.plan.written.start import Start, read_text
from stoker.plan.written.table import Table, scalar_text
from stoker.plan.written.template import fill_once
from stoker.plan.written.tree import read_tree
from stoker.records import Recipe

NEEDED = ("name", "recipe_version", "container", "command")
KEYS = frozenset(
    (*NEEDED, "description", "model", "cluster_only", "solo_only", "build_args", "mods", "pull_image", "defaults", "env")
)
# How its scripts start every container (launch-cluster.sh of 1c263eb6, and its README).
CONTAINER: dict[str, tuple[str, ...]] = {"privileged": (), "gpus": ("all",), "ipc": ("host",), "network": ("host",)}
EXECUTOR = re.compile(r"--distributed-executor-backend(?:=|[ \t]+)(\S+)(?:[ \t]*\\\n)?")


def looks_like(tree: object, name: str) -> bool:
    """Tells whether a parsed file is a recipe of eugr's format; the version decides, never the braces."""
    return isinstance(tree, dict) and scalar_text(tree.get("recipe_version")) == "1"


def read(text: str, name: str) -> tuple[Recipe, ...]:
    """Returns the launch of a recipe; raises StokerError where the file is none."""
    tree = read_tree(text, name)
    top = Table(tree.value, said=tree.complaints())
    command = top.text("command")
    if command is None:
        raise StokerError(f"{name} has no command", why="its runner refuses a recipe without `command`")
    top.check_keys(KEYS, "eugr's recipes: its runner passes over it in silence")
    top.said += [f"`{key}` is missing, so its runner refuses the recipe" for key in NEEDED if key not in top]
    filled = fill_once(command, top.table("defaults").pairs())
    top.said += filled.said
    on_its_nodes = _for_its_nodes(filled.text, top)
    start = Start(
        name=top.text("name") or name,
        source=name,
        line=tree.line("command"),
        model=top.text("model"),
        image=top.text("container"),
        environment=_environment(top),
        container=CONTAINER,
    )
    _say_image(top)
    _say_nodes(top)
    return (read_text(start, on_its_nodes, top.said),)


def _for_its_nodes(command: str, top: Table) -> str:
    """Returns the command as its runner changes it: on a single machine it cuts the distributed backend out."""
    found = EXECUTOR.search(command)
    if found is None:
        return command
    if top.is_on("solo_only"):
        return EXECUTOR.sub("", command)
    if not top.is_on("cluster_only"):
        top.said.append(f"on a single machine its runner cuts `--distributed-executor-backend {found[1]}` out")
    return command


def _environment(top: Table) -> dict[str, str]:
    environment = top.table("env").pairs()
    for name, value in environment.items():
        if "$" in value or "`" in value:  # it becomes `export NAME="VALUE"`
            top.said.append(f"`env.{name}` is {value[:80]}, which the container's shell expands")
    return environment


def _say_image(top: Table) -> None:
    image = top.text("container") or ""
    if image and "/" not in image:
        top.said.append(f"the image {image} is built on the machine by spark-vllm-docker: no registry has it")
    if top.values.get("build_args"):
        top.said.append(f"`build_args` go to the script that builds the image: {' '.join(top.texts('build_args'))}")
    if top.values.get("mods"):
        top.said.append(f"`mods` patches the container before serving ({', '.join(top.texts('mods'))}); it was not read")


def _say_nodes(top: Table) -> None:
    size = top.table("defaults").text("tensor_parallel") or "1"
    if top.is_on("cluster_only"):
        top.said.append("it is written for several machines only: this is the part of one of them")
    elif size != "1":
        top.said.append(f"`tensor_parallel` is {size}, and one GB10 has one GPU: on a single machine it has to be 1")
