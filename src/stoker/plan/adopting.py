"""Makes a plan of an engine that somebody else has started: everything stays as it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stoker.errors import Refused
from stoker.plan.choose import with_id
from stoker.plan.secrets import is_secret_variable
from stoker.plan.wishes import check_wish, name_for
from stoker.plan.written.flags import flags_of
from stoker.plan.written.prefixes import program_name
from stoker.plan.written.programs import FLAG_WITH_VALUE, PROGRAMS, PYTHON, find_program
from stoker.plan.written.words import recipe_of
from stoker.records import GIB, AdoptedProcess, AdoptWish, Listener, Plan, Recipe, Setting, Wish

FOUND = "it was started so"
REACHED = frozenset({"127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"})
SERVED_NAMES = {"llamacpp": ("--alias", "-a"), "vllm": ("--served-model-name",), "sglang": ("--served-model-name",)}
# What an engine's own variables begin with; the rest of a login's is no business of a restart.
PREFIXES = ("VLLM_", "SGLANG_", "SGL_", "LLAMA_", "GGML_", "CUDA_", "NVIDIA_", "NCCL_", "TORCH", "PYTORCH_", "TRITON_",
            "FLASHINFER_", "HF_", "OMP_")  # fmt: skip
KEPT = frozenset({"PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "PYTHONPATH"})


class Found(NamedTuple):
    """What was read of the engine: its process, the model's files and what it holds of the memory."""

    process: AdoptedProcess
    words: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    served: str | None
    model_path: str
    revision: str
    held_bytes: int


def recognise(words: Sequence[str], environment: Mapping[str, str], source: str) -> Recipe | None:
    """Returns the launch that a running process is; None where it is no engine itself, though it may have started one."""
    typed = _as_typed(words)
    if find_program(typed) is None:
        return None
    recipe = recipe_of(typed, environment=environment, source=source)
    return recipe if recipe is not None and recipe.engine in SERVED_NAMES else None


def _as_typed(words: Sequence[str]) -> tuple[str, ...]:
    """Takes the interpreter off a script that was called by its own name, as `/opt/venv/bin/vllm` is."""
    if not words or not PYTHON.fullmatch(program_name(words[0])):
        return tuple(words)
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] not in ("-m", "-c"):
        place += 2 if words[place] in FLAG_WITH_VALUE else 1
    script = program_name(words[place]) if place < len(words) else ""
    return tuple(words[place:]) if script in PROGRAMS else tuple(words)


def choose_port(recipe: Recipe, asked: int | None, usual: int | None, listeners: Iterable[Listener]) -> int:
    """Returns the port of the engine: as asked, as its words say or as is usual, where it listens there or nowhere yet."""
    seen = list(listeners)
    reached = sorted({one.port for one in seen if one.host in REACHED})
    said = asked or _number(flags_of(recipe.words).get("--port")) or usual
    if said is not None and (said in reached or not seen):
        return said
    if elsewhere := [one for one in seen if one.port == said]:
        raise Refused(
            f"it listens on {elsewhere[0].host}, port {said}, and not on this machine's loopback",
            next_step="start it with --host 127.0.0.1",
        )
    if asked is None and len(reached) == 1:
        return reached[0]
    raise Refused(
        f"nobody knows on which port it answers clients: it listens on {', '.join(map(str, reached)) or 'none of loopback'}",
        next_step="name it: --port PORT",
    )


def _number(values: Sequence[str] | None) -> int | None:
    return int(values[0]) if values and values[0].isdecimal() else None


def served_name(recipe: Recipe, told: Sequence[str]) -> str | None:
    """Returns the name by which the engine knows its model: the first that it tells, else the one in its words."""
    if told:
        return told[0]
    flags = flags_of(recipe.words)
    said = next((flags[name][0] for name in SERVED_NAMES.get(recipe.engine or "", ()) if flags.get(name)), None)
    return said.split(",")[0] if said else recipe.model


def check_speaks_plainly(recipe: Recipe) -> None:
    """Raises Refused where the gateway could not talk to the engine."""
    flags = flags_of(recipe.words)
    ssl = next((name for name in flags if name.startswith("--ssl-") and name.endswith("file")), None)
    if ssl or "--uds" in flags:
        raise Refused(
            f"it speaks {'HTTPS' if ssl else 'over a Unix socket'} ({ssl or '--uds'}), the gateway HTTP on loopback",
            next_step="start it without that, on 127.0.0.1; the gateway is what others reach",
        )


def plan_adopted(wish: AdoptWish, recipe: Recipe, found: Found) -> Plan:
    """Returns the plan of an engine that runs."""
    model = wish.model_name or found.served
    if model is None:
        raise Refused("nobody knows which model it serves", next_step="name it as the engine does: --model-name NAME")
    name = wish.name or name_for(model.rstrip("/").rpartition("/")[2].removesuffix(".gguf"))
    check_wish(Wish(name=name, served_name=model, claim_gib=wish.claim_gib, port=found.port))
    claim_bytes = int((wish.claim_gib or 0) * GIB)
    settings = _variables(found.environment) if wish.restart else ()
    return with_id(
        Plan(
            plan_id="", service=name, model=model, model_path=found.model_path, revision=found.revision,
            engine=recipe.engine or "", server=None, port=found.port, settings=settings,
            memory_need_bytes=max(claim_bytes, found.held_bytes), program=found.words, adopted=found.process,
            memory_because="declared" if claim_bytes >= found.held_bytes else "what it held when it was adopted",
        )
    )  # fmt: skip


def _variables(environment: Mapping[str, str]) -> tuple[Setting, ...]:
    kept = {name: value for name, value in environment.items() if name in KEPT or name.startswith(PREFIXES)}
    shown = sorted((name, value) for name, value in kept.items() if not is_secret_variable(name, value))
    return tuple(Setting(f"${name}", value, FOUND) for name, value in shown)
