"""Reads what a container image on this machine holds, by what its maker wrote about it; nothing of it is run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from stoker.box import Box
from stoker.facts.machine.containers import NAMES, ContainerEngineName
from stoker.facts.machine.printed import find_json
from stoker.facts.model.documents import Document, items, table, text, whole
from stoker.records import Environment

ARCHES = {"arm64": "aarch64", "amd64": "x86_64"}  # as images are labelled, and as kernels say it
# The words of a command, and the beginnings of variables, that only one engine uses.
COMMANDS = (
    ("vllm", re.compile(r"(^|[/ ])vllm( |$|\.)")),
    ("sglang", re.compile(r"(^|[/ ])sglang( |$|\.)")),
    ("llamacpp", re.compile(r"(^|[/ ])llama-(server|cli)( |$)")),
)
VARIABLES = {"VLLM_": "vllm", "SGLANG_": "sglang", "SGL_": "sglang", "LLAMA_ARG_": "llamacpp"}
VERSIONS = {
    "vllm": ("VLLM_VERSION",),
    "sglang": ("SGLANG_VERSION", "SGL_VERSION"),
    "llamacpp": ("LLAMA_CPP_VERSION",),
}
TITLES = ("org.opencontainers.image.title", "org.opencontainers.image.source", "org.opencontainers.image.ref.name")
VERSION_LABEL = "org.opencontainers.image.version"
NUMBER = re.compile(r"v?(\d\S*)")


def find_image(box: Box, name: str) -> Environment | None:
    """Returns what an image that was pulled holds, docker's before podman's; None where neither has it."""
    return next((found for runtime in NAMES if (found := read_image(box, name, runtime))), None)


def read_image(box: Box, name: str, runtime: ContainerEngineName = "docker") -> Environment | None:
    """Returns what an image that was pulled holds; None where the engine has no such image or does not answer."""
    # An option after `--` is a name: no image can be called `--all`.
    found = parse_image(name, box.run((runtime, "image", "inspect", "--", name)))
    return msgspec.structs.replace(found, runtime=runtime) if found else None


def entry_words(image: Environment, engine: str) -> tuple[str, ...]:
    """Returns the words that start an engine's server in an image, where its maker made them the entrypoint; else none."""
    line = " ".join(image.entrypoint)
    return image.entrypoint if dict(COMMANDS)[engine].search(line) else ()


def parse_image(name: str, printed: str | None) -> Environment | None:
    """Returns what `docker image inspect` or `podman image inspect` printed of one image; None where it printed none."""
    found = find_json(printed)
    image = found[0] if isinstance(found, list) and found else found
    if not isinstance(image, dict):
        return None
    config = table(image, "Config")
    variables = dict(_pairs(items(config, "Env")))
    labels = table(config, "Labels") or table(image, "Labels")
    entrypoint = _words(config, "Entrypoint")
    engine = _engine([*entrypoint, *_words(config, "Cmd")], variables, labels)
    arch = text(image, "Architecture")
    return Environment(
        kind="image",
        name=name,
        engine=engine,
        version=_version(engine, variables, labels) if engine else None,
        cuda=variables.get("CUDA_VERSION") or None,
        arch=ARCHES.get(arch, arch) if arch else None,
        python=variables.get("PYTHON_VERSION") or None,
        torch=_number(variables.get("PYTORCH_VERSION")),
        digest=_digest(image),
        size_bytes=whole(image, "Size"),
        entrypoint=entrypoint,
    )


def _pairs(entries: Iterable[Any]) -> Iterable[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, str) and "=" in entry:
            name, _, value = entry.partition("=")
            yield name, value


def _words(config: Document, name: str) -> tuple[str, ...]:
    said = config.get(name)
    words = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    return tuple(word for word in words if isinstance(word, str))


def _engine(command: list[str], variables: dict[str, str], labels: Document) -> str | None:
    line = " ".join(command)
    by_command = [engine for engine, sign in COMMANDS if sign.search(line)]
    by_variable = [engine for name in variables for start, engine in VARIABLES.items() if name.startswith(start)]
    by_label = [engine for label in _titles(labels) for engine, sign in COMMANDS if sign.search(label.replace("/", " "))]
    return next(iter([*by_command, *by_variable, *by_label]), None)


def _titles(labels: Document) -> list[str]:
    return [value.lower() for name in TITLES if (value := text(labels, name))]


def _version(engine: str, variables: dict[str, str], labels: Document) -> str | None:
    for name in VERSIONS[engine]:
        if number := _number(variables.get(name)):
            return number
    # A label that an image inherited tells the version of what it was built on: Ubuntu's, for CUDA's own images.
    is_its_own = any(engine in title for title in _titles(labels))
    return _number(text(labels, VERSION_LABEL)) if is_its_own else None


def _number(said: str | None) -> str | None:
    found = NUMBER.fullmatch(said or "")
    return found[1] if found else None


def _digest(image: Document) -> str | None:
    """The image's own digest, that of its configuration: docker writes the kind of hash before it, podman does not."""
    found = text(image, "Id")
    return found if found is None or ":" in found else f"sha256:{found}"
