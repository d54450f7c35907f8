"""Which programs are engines, how they are called, and where in their words the model stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stoker.engines import engine_of_image, image_parts
from stoker.plan.written.flags import flags_of
from stoker.plan.written.prefixes import program_name

MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "sglang.launch_server": "sglang",
    "sglang.srt.entrypoints.http_server": "sglang",
    "stoker.embedded": "llamacpp",
}
PROGRAMS = {"vllm": "vllm", "sglang": "sglang", "llama-server": "llamacpp", "llama-server.exe": "llamacpp",
            "trtllm-serve": "trtllm"}  # fmt: skip
MODEL_FLAGS = {
    "vllm": ("--model",),
    "sglang": ("--model-path", "--model"),
    "llamacpp": ("-m", "--model", "-hf", "-hfr", "--hf-repo", "-mu", "--model-url"),
    "trtllm": ("--model",),
}
MODEL_VARIABLES = {"llamacpp": ("LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO")}
SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ash"})
PYTHON = re.compile(r"python(\d(\.\d+)?)?")
FLAG_WITH_VALUE = ("-X", "-W")
MODEL_LIKE = re.compile(r"/.*|[\w.-]+/[\w.:-]+|\$.*|.*\.gguf")


class Program(NamedTuple):
    """An engine and how many words name its program: two for `vllm serve`."""

    engine: str
    length: int


def find_program(words: Sequence[str]) -> Program | None:
    """Returns the engine that these words start, or None."""
    if not words:
        return None
    name = program_name(words[0])
    if PYTHON.fullmatch(name) or name == "-m" or (name.startswith("$") and "-m" in words[1:3]):
        return _module(words, 0 if name == "-m" else 1)  # `$PYTHON -m vllm...` can be nothing else
    engine = PROGRAMS.get(name)
    if engine in ("vllm", "sglang"):
        return Program(engine, 2) if words[1:2] == ["serve"] or words[1:2] == ("serve",) else None
    if engine == "trtllm":
        return Program(engine, 2 if tuple(words[1:2]) == ("serve",) else 1)
    return Program(engine, 1) if engine else None


def _module(words: Sequence[str], start: int) -> Program | None:
    place = start
    while place < len(words) and words[place].startswith("-") and words[place] != "-m":
        place += 2 if words[place] in FLAG_WITH_VALUE else 1
    if tuple(words[place : place + 1]) != ("-m",) or place + 1 >= len(words):
        return None
    module = words[place + 1]
    engine = MODULES.get(module)
    serves = engine == "vllm" and tuple(words[place + 2 : place + 3]) == ("serve",)
    return Program(engine, place + 2 + serves) if engine else None


def program_of_image(image: str, words: Sequence[str]) -> Program | None:
    """Returns the engine that an image starts by itself where its command is only the engine's own words.

    `vllm/vllm-openai` and llama.cpp's `server` images do; what others do is guessed by their name and first word.
    """
    repository, tag = image_parts(image)
    engine = engine_of_image(image) or _named(repository)
    first = words[0] if words else ""
    if engine is None or engine not in MODEL_FLAGS:
        return None
    if engine == "llamacpp":
        starts = "server" in f"{repository}:{tag}" and (not first or first.startswith("-"))
        return Program(engine, 0) if starts else None
    if first == "serve":
        return Program(engine, 1)
    takes_model = engine == "vllm" and repository.endswith("vllm-openai") and first and first not in SHELLS
    return Program(engine, 0) if first.startswith("--") or takes_model else None


def engine_in_image(image: str) -> str | None:
    """Returns the engine in an image, also where only its name hints at it."""
    return engine_of_image(image) or _named(image_parts(image)[0])


def _named(repository: str) -> str | None:
    hints = {"vllm": "vllm", "sglang": "sglang", "llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "tensorrt-llm": "trtllm"}
    return next((engine for hint, engine in hints.items() if hint in repository.lower()), None)


def find_model(engine: str, words: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Returns the model that an engine's words name: a flag's value, or the first word that stands alone."""
    flags = flags_of(words)
    for flag in MODEL_FLAGS.get(engine, ()):
        if flags.get(flag):
            return flags[flag][0]
    if words and not words[0].startswith("-") and engine != "llamacpp":
        return words[0]
    for name in MODEL_VARIABLES.get(engine, ()):
        if environment.get(name):
            return environment[name]
    if engine == "llamacpp":
        return None
    behind = [values[-1] for values in flags.values() if len(values) > 1 and MODEL_LIKE.fullmatch(values[-1])]
    return behind[0] if behind else None
