"""Chooses the engine: the one asked for, the one inside the image or program, else what can load the model. Pure."""

from __future__ import annotations

from stoker.engines import engine_of_image, find, names
from stoker.errors import Refused
from stoker.plan.alternatives import fastest_engine
from stoker.plan.wishes import USER
from stoker.records import Machine, Model, Wish

LLAMACPP = "llamacpp"
NAMED_IN_PROGRAM = {"sglang": "sglang", "vllm": "vllm", "llama": LLAMACPP}


def choose_engine(wish: Wish, model: Model, machine: Machine) -> tuple[str, str]:
    """Returns the engine and why; raises Refused where none can load the model on this machine."""
    chosen, because = _said(wish) or _able(wish, model, machine)
    if model.format not in find(chosen).formats:
        raise Refused(
            f"{chosen} does not load {model.format}",
            why=f"{model.path} holds {model.format} files",
            next_step=f"use {' or '.join(_loading(model))}, or fetch the model in another format",
        )
    return chosen, because


def _said(wish: Wish) -> tuple[str, str] | None:
    inside = engine_of_image(wish.image) if wish.image is not None else None
    if wish.engine != "auto":
        if inside not in (None, find(wish.engine).name):
            raise Refused(
                f"`engine` is {wish.engine}, and {wish.image} holds {inside}",
                why="the image's name tells it",
                next_step="leave `engine` out, or name another image",
            )
        return find(wish.engine).name, USER
    if inside is not None:
        return inside, f"it is what {wish.image} holds"
    if wish.server is not None:
        return LLAMACPP, "`server` names a llama-server"
    words = " ".join(word.rsplit("/", 1)[-1] for word in wish.program).lower()  # a folder's name says nothing
    return next(((engine, "your program is one") for word, engine in NAMED_IN_PROGRAM.items() if word in words), None)


def _loading(model: Model) -> list[str]:
    return [name for name in names() if model.format in find(name).formats]


def _able(wish: Wish, model: Model, machine: Machine) -> tuple[str, str]:
    able = _loading(model)
    if len(able) == 1:
        return able[0], f"it is the one that loads {model.format}"
    if not machine.gpus:
        raise Refused(
            f"{model.name} needs a GPU that NVIDIA's driver knows of",
            why=f"{' and '.join(able)} load {model.format}, and both want one",
            next_step="fetch the model as GGUF, which llama.cpp serves on any processor, or name --engine",
        )
    measured = fastest_engine(model, tuple(able), has_draft=wish.draft is not None)
    return measured or (able[-1], "nobody measured this model on such a machine; it is the one that most models know")
