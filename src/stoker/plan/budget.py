"""Predicts the memory a service needs before it is started, and whether a machine has it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from stoker.engines.llamacpp import COMPUTE_FLOOR_BYTES, COMPUTE_SHARE, PROCESS_BYTES
from stoker.records import GIB, MIB, Budget, BudgetLine, Machine, Model, Pool, Record

SIXTEEN_BIT_BYTES, EIGHT_BIT_BYTES = 2.0, 1.0
SHARE_STEP = 0.01
CACHE, RAY = "KV cache", "ray"


def kv_bytes_of(models: list[Model], context_total: int, value_bytes: float = SIXTEEN_BIT_BYTES) -> int:
    """Returns llama.cpp's cache of so many tokens; a model that does not tell its shape is not counted.

    `value_bytes` are those of the first model's cache; a draft's keeps 16 bits a value.
    """
    model, *drafts = ((model.kv_bytes_per_token or 0) * context_total for model in models)
    return model - int(model * (1 - value_bytes / SIXTEEN_BIT_BYTES)) + sum(drafts)


def predict_need_bytes(
    models: list[Model], context_total: int, prompt_bytes: int = 0, value_bytes: float = SIXTEEN_BIT_BYTES
) -> tuple[int, str]:
    """Returns what llama.cpp needs for these models with a cache of `context_total` tokens, and how it was counted.

    `prompt_bytes` are those of its prompt cache, which lies beside the other; `value_bytes` as for `kv_bytes_of`.
    """
    weights_bytes = sum(model.file_bytes for model in models)
    kv_bytes = kv_bytes_of(models, context_total, value_bytes)
    compute_bytes = COMPUTE_FLOOR_BYTES + int(weights_bytes * COMPUTE_SHARE)
    need_bytes = weights_bytes + kv_bytes + prompt_bytes + compute_bytes + PROCESS_BYTES
    unknown = [model.name for model in models if model.kv_bytes_per_token is None]
    because = (
        f"weights {weights_bytes / MIB:,.0f} MiB + KV cache {kv_bytes / MIB:,.0f} MiB for {context_total:,} tokens"
        f" + buffers {compute_bytes / MIB:,.0f} MiB + process {PROCESS_BYTES / MIB:,.0f} MiB"
    )
    if prompt_bytes:
        because += f" + prompt cache {prompt_bytes / MIB:,.0f} MiB"
    if unknown:
        because += f"; the KV cache of {', '.join(unknown)} is unknown and not counted"
    return need_bytes, because


def cache_bytes(model: Model, context: int, requests: float, value_bytes: float = SIXTEEN_BIT_BYTES) -> int | None:
    """Returns the cache of so many requests of `context` tokens each; None where the model does not tell its shape."""
    if not model.cache:
        known = model.kv_bytes_per_token
        return None if known is None else int(known * context * requests * value_bytes / SIXTEEN_BIT_BYTES)
    per_request = 0.0
    for layers in model.cache:
        kept = min(context, layers.window_tokens) if layers.window_tokens else context
        per_request += layers.values_per_token * value_bytes * kept + layers.state_bytes
    return int(per_request * requests)


class Load(Record, frozen=True):
    """What an engine is to carry, and what is reckoned for it; `parameters` are those of the `budget` rules."""

    model: Model
    draft: Model | None
    context: int
    requests: int
    batch_tokens: int
    parameters: Mapping[str, float]
    share_covers_activations: bool
    kv_value_bytes: float = SIXTEEN_BIT_BYTES
    told_cache_bytes: int | None = None
    most_cache_tokens: int | None = None

    def gib(self, name: str) -> int:
        """Returns a parameter that is given in GiB, in bytes; 0 where no rule gives it."""
        return int(self.parameters.get(name, 0.0) * GIB)

    def cache(self, requests: float) -> int:
        """Returns the cache of model and draft for so many full contexts; what is unknown is not counted."""
        has_cache = self.draft is not None and self.parameters.get("draft_has_cache", 1.0) > 0
        models = [self.model, self.draft] if self.draft is not None and has_cache else [self.model]
        return sum(cache_bytes(model, self.context, requests, self.kv_value_bytes) or 0 for model in models)

    def told_cache(self, left_bytes: int) -> int:
        """Returns the cache by what the engine is told of it, where so much is left; a size in bytes goes before a share."""
        if self.told_cache_bytes is not None:
            return self.told_cache_bytes
        most = self.most_cache_tokens
        return left_bytes if most is None else min(left_bytes, self.cache(most / self.context))


class Room(Record, frozen=True):
    """A machine's memory for engines: in all, for all engines when nothing else runs, and now; None where it is unknown."""

    total_bytes: int
    usable_bytes: int
    available_bytes: int | None
    pool: Pool


def room_of(machine: Machine, parameters: Mapping[str, float]) -> Room:
    """Returns the room that an engine finds: the card's own memory, or what the whole machine shares."""
    system_bytes = int(parameters.get("system_gib", 0.0) * GIB)
    gpu = machine.gpus[0] if machine.gpus else None
    if gpu is not None and not machine.unified_memory and gpu.memory_total_bytes is not None:
        used = gpu.memory_used_bytes
        available = None if used is None else gpu.memory_total_bytes - used
        return Room(gpu.memory_total_bytes, gpu.memory_total_bytes - system_bytes, available, "gpu")
    return machine_room(machine, parameters)


def machine_room(machine: Machine, parameters: Mapping[str, float]) -> Room:
    """Returns the room of the machine's own memory, whatever card it has."""
    system_bytes, total = int(parameters.get("system_gib", 0.0) * GIB), machine.memory.total_bytes
    return Room(total, total - system_bytes, machine.memory.available_bytes, "both")


def fixed_lines(load: Load) -> list[BudgetLine]:
    """Returns everything but the cache, which takes what is left."""
    weights = load.model.file_bytes
    lines = [BudgetLine("weights", weights, f"the files of {load.model.name}")]
    if load.draft is not None:
        lines.append(BudgetLine("draft", load.draft.file_bytes, f"the files of {load.draft.name}"))
    if link_bytes := load.gib("link_gib"):
        lines.append(BudgetLine("link", link_bytes, "NCCL's buffers for the other boxes"))
    if ray_bytes := load.gib("ray_gib"):
        ray_bytes += load.gib("ray_store_gib")
        lines.append(BudgetLine(RAY, ray_bytes, "Ray's processes and its store of objects", "host"))
    per_unit, hidden = load.parameters.get("activation_bytes_per_unit", 0.0), load.model.hidden_size or 0
    activations = int(per_unit * hidden * load.batch_tokens)
    because = f"{per_unit:.0f} bytes x width {hidden:,} x {load.batch_tokens:,} tokens of prefill at once"
    return [
        *lines,
        BudgetLine("activations", activations, because),
        BudgetLine("graphs", load.gib("graph_gib"), "captured graphs and their buffers"),
        BudgetLine("process", load.gib("process_gib"), "the engine's processes, beside what they put on the GPU", "host"),
    ]


def wanted_share(load: Load, room: Room) -> float:
    """Returns the share of the memory that the cache of all requests asks for, at most what the rules allow."""
    most = load.parameters.get("memory_share_most", 1.0)
    need_bytes = _pool_besides_cache(load, room) + load.cache(load.requests)
    share = math.ceil(need_bytes / room.total_bytes / SHARE_STEP) * SHARE_STEP
    return round(max(SHARE_STEP, min(share, most)), 2)


def _pool_besides_cache(load: Load, room: Room) -> int:
    """What the engine's share holds besides the cache.

    vLLM's share is of the whole memory and covers what its profile run sees. SGLang's is what is not left free of the whole,
    counted from what was free at its start: so what the system holds is in it, and graphs and activations are not. Ray's
    processes lie beside it.
    """
    lines = {line.name: line.need_bytes for line in fixed_lines(load) if line.name != RAY}
    if load.share_covers_activations:
        return sum(lines.values())
    return lines["weights"] + lines.get("draft", 0) + room.total_bytes - room.usable_bytes


def plan_budget(load: Load, room: Room, share: float | None) -> Budget:
    """Returns the budget of a load at a share of the memory; None where the engine has no such share (llama.cpp)."""
    lines = fixed_lines(load)
    pool_bytes = None if share is None else int(share * room.total_bytes)
    wanted_bytes, one_bytes = load.cache(load.requests), load.cache(1)
    left_bytes = wanted_bytes if pool_bytes is None else max(0, pool_bytes - _pool_besides_cache(load, room))
    kv_bytes = load.told_cache(left_bytes)
    lines.insert(-3, BudgetLine(CACHE, kv_bytes, _say_cache(load, kv_bytes, one_bytes)))
    return budget_of(tuple(lines), room, load.parameters, kv_bytes, one_bytes, load.context, tuple(_unknown(load)))


def budget_of(
    lines: tuple[BudgetLine, ...], room: Room, parameters: Mapping[str, float], kv_bytes: int, one_bytes: int, context: int,
    unknown: tuple[str, ...],
) -> Budget:  # fmt: skip
    """Returns the budget that these lines make in a room: what is kept besides, and whether it fits."""
    total_bytes = sum(line.need_bytes for line in lines)
    kept = kept_lines(room, parameters)
    usable_bytes = room.total_bytes - sum(line.need_bytes for line in kept)
    reserve_bytes = kept[-1].need_bytes
    fits_machine = total_bytes <= usable_bytes and kv_bytes >= one_bytes
    now = room.available_bytes
    return Budget(
        lines=lines,
        kept=kept,
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        available_bytes=now,
        fits_machine=fits_machine,
        fits_now=None if now is None else fits_machine and total_bytes + reserve_bytes <= now,
        kv_tokens=int(context * kv_bytes / one_bytes) if one_bytes else None,
        kv_requests=round(kv_bytes / one_bytes, 1) if one_bytes else None,
        unknown=unknown,
    )


def declared_budget(budget: Budget, claim_bytes: int) -> Budget:
    """Returns the budget of a service whose owner says what it takes."""
    now, reserve_bytes = budget.available_bytes, budget.kept[-1].need_bytes
    fits = claim_bytes <= budget.usable_bytes
    return msgspec.structs.replace(
        budget,
        lines=(BudgetLine("declared", claim_bytes, "`claim_gib` of the service", "both"),),
        total_bytes=claim_bytes,
        fits_machine=fits,
        fits_now=None if now is None else fits and claim_bytes + reserve_bytes <= now,
    )


def card_need_bytes(budget: Budget, machine: Machine, total_bytes: int) -> int:
    """Returns how much of a need lies on a card of its own, which is all but the host's lines; 0 without such a card."""
    if room_of(machine, {}).pool != "gpu":
        return 0
    host_bytes = sum(line.need_bytes for line in budget.lines if line.pool == "host")
    return max(0, total_bytes - host_bytes)


def kept_lines(room: Room, parameters: Mapping[str, float]) -> tuple[BudgetLine, ...]:
    """Returns what no engine may have: what the system holds, and the reserve in which the page cache lives."""
    reserve_bytes = int(parameters.get("reserve_gib", 0.0) * GIB)
    return (
        BudgetLine("system", room.total_bytes - room.usable_bytes, "held by the system or the driver", "host"),
        BudgetLine("reserve", reserve_bytes, "kept free: page cache, and what the budget does not know", "host"),
    )


def _say_cache(load: Load, kv_bytes: int, one_bytes: int) -> str:
    if not one_bytes:
        return "the model does not tell how much a token takes"
    return f"holds {kv_bytes / one_bytes:.1f} requests of {load.context:,} tokens; one takes {one_bytes / GIB:.2f} GiB"


def _unknown(load: Load) -> list[str]:
    shares = load.parameters.get("draft_has_cache", 1.0) == 0
    models = [load.model, load.draft] if load.draft and not shares else [load.model]
    found = [f"the KV cache of {model.name}" for model in models if cache_bytes(model, load.context, 1) is None]
    if load.model.hidden_size is None:
        found.append(f"the width of {load.model.name}, so its activations")
    return found
