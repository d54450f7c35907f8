"""Chooses every setting of a service that llama.cpp serves, each with the reason for it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from stoker.engines import find
from stoker.engines.llamacpp import (
    DEFAULT_CONTEXT_TOKENS,
    DEFAULT_DRAFT_TOKENS,
    DEFAULT_PARALLEL,
    MOST_CONTEXT_TOKENS,
    SMALL_MODEL_BYTES,
)
from stoker.errors import Refused
from stoker.plan.asked import OWN_FLAGS, check_own
from stoker.plan.budget import kv_bytes_of, predict_need_bytes
from stoker.plan.cache_type import cache_value_bytes
from stoker.plan.engine_choice import LLAMACPP
from stoker.plan.prompt_cache import choose_prompt_cache, prompt_cache_bytes
from stoker.plan.wishes import USER, check_wish
from stoker.records import Abilities, Model, Plan, Setting, Way, Wish

# llama.cpp takes the last of two; the memory is counted, and slots are shared out, by what the table says.
OWN = {**OWN_FLAGS, "--ctx-size": "context", "--parallel": "parallel"}
REASONING = {
    "off": "the model thinks only where a request sets chat_template_kwargs.enable_thinking",
    "on": "the model thinks unless a request forbids it",
}


def choose_plan(
    wish: Wish, model: Model, draft: Model | None = None, engine_version: str | None = None,
    bound: Setting | None = None,
) -> Plan:  # fmt: skip
    """Returns the plan for a wish, whose prompt cache `bound` limits; raises Refused where the wish cannot work."""
    check_wish(wish, LLAMACPP, find(LLAMACPP).drafting)
    context, context_because = _context(wish, model)
    parallel, parallel_because = _parallel(wish)
    total = context * parallel
    if total > MOST_CONTEXT_TOKENS:
        raise Refused(
            f"`context` times `parallel` is {total:,} tokens", next_step=f"stay at {MOST_CONTEXT_TOKENS:,} or less together"
        )
    models = [model, draft] if draft else [model]
    own = tuple(_own_flags(wish))
    value_bytes = cache_value_bytes(own)
    prompts = choose_prompt_cache(wish, kv_bytes_of(models, total, value_bytes), bound)
    settings = (
        Setting("context", context, context_because),
        Setting("parallel", parallel, parallel_because),
        Setting("context_total", total, "llama.cpp shares one cache between its slots: context times parallel"),
        *_hardware(wish, model),
        *prompts,
        *_batches(wish),
        *_speculation(wish, model, draft),
        *_reasoning(wish),
        *own,
    )
    prompt_bytes = prompt_cache_bytes((*prompts, *own)) or 0
    need_bytes, memory_because = predict_need_bytes(models, total, prompt_bytes, value_bytes)
    plan = Plan(
        plan_id="",
        service=wish.name,
        model=wish.served_name or wish.name,
        model_path=model.path,
        revision=model.digest,
        engine=LLAMACPP,
        server=wish.server,
        port=wish.port or 0,
        settings=settings,
        memory_need_bytes=need_bytes,
        memory_because=memory_because,
        engine_version=engine_version,
        group=wish.group,
    )
    return with_id(plan)


def with_id(plan: Plan) -> Plan:
    """Returns the plan with the digest of everything in it that decides the launch."""
    decides = msgspec.to_builtins(msgspec.structs.replace(plan, kv_tokens=None, abilities=Abilities()))
    del decides["card_need_bytes"]  # where the need lies follows from the rest and the machine
    del decides["seat"]  # which launch of the head's it belongs to is no other plan
    if not plan.parts:
        del decides["parts"]
    if plan.ray is None:
        del decides["ray"]
    decides = msgspec.json.encode(decides)
    return msgspec.structs.replace(plan, plan_id=hashlib.sha256(decides).hexdigest()[:12])


def _own_flags(wish: Wish) -> Iterator[Setting]:
    for name, value in wish.flags.items():
        check_own(name, OWN)
        yield Setting(f"--{name}", value, USER)
    yield from (Setting(f"${name}", value, USER) for name, value in wish.environment.items())


def _parallel(wish: Wish) -> tuple[int, str]:
    if wish.parallel is None:
        return DEFAULT_PARALLEL, "a person, an agent and two to spare can be answered at once"
    return wish.parallel, USER


def _lookup(wish: Wish) -> Iterator[Setting]:
    """N-gram lookup: how many of the last tokens it finds again, and how many it drafts, are the engine's unless said."""
    because = {"speculation_type": "repeats what already stands in the context; needs no second model"}
    way = Way(kind="ngram", draft_tokens=wish.draft_tokens, lookup_min=wish.lookup_min)
    found = find(LLAMACPP).speculate(way, None)
    yield from (Setting(name, value, because.get(name, USER)) for name, value in found.items())


def _batches(wish: Wish) -> Iterator[Setting]:
    if wish.batch_tokens is not None:
        yield Setting("batch_tokens", wish.batch_tokens, USER)
        yield Setting("micro_batch_tokens", wish.batch_tokens, "as many at once as a step takes, or it is no larger step")


def _reasoning(wish: Wish) -> Iterator[Setting]:
    if wish.reasoning != "auto":
        yield Setting("reasoning", wish.reasoning, REASONING[wish.reasoning])


def _context(wish: Wish, model: Model) -> tuple[int, str]:
    trained = model.context_tokens
    if wish.context is None:
        if trained is not None and trained <= DEFAULT_CONTEXT_TOKENS:
            return trained, "all that the model was trained for"
        return DEFAULT_CONTEXT_TOKENS, f"enough for most work; the model allows {trained or 'an unknown number'}"
    if trained is not None and wish.context > trained:
        raise Refused(
            f"`context` is {wish.context:,} tokens, {model.name} was trained for {trained:,}",
            why="beyond it the model writes nonsense and no engine says so",
            next_step=f"give {trained} or less",
        )
    return wish.context, USER


def _hardware(wish: Wish, model: Model) -> Iterator[Setting]:
    if wish.threads is not None:
        yield Setting("threads", wish.threads, USER)
    elif model.file_bytes < SMALL_MODEL_BYTES:
        yield Setting("threads", 1, "a model this small is no faster on more, and far slower when other programs run")
    if wish.gpu_layers is not None:
        yield Setting("gpu_layers", wish.gpu_layers, USER)


def _speculation(wish: Wish, model: Model, draft: Model | None) -> Iterator[Setting]:
    if wish.speculation == "off" or (wish.speculation == "auto" and draft is None):
        return
    if wish.speculation == "ngram":
        yield from _lookup(wish)
        return
    if wish.speculation not in ("auto", "draft"):
        raise Refused(
            f"llama.cpp does not draft with `{wish.speculation}` here",
            why="this build takes a draft model or n-gram lookup",
            next_step="set speculation = 'draft' and name a small GGUF, or serve with another engine",
        )
    if draft is None:
        raise Refused(
            "speculation with a draft model needs `draft`",
            why=f"{model.name} brings no draft model along",
            next_step="name a small GGUF with the same tokenizer, or use speculation = 'ngram'",
        )
    for one in (model, draft):
        if one.vocabulary_hash is None:
            raise Refused(
                f"it is unknown whether {draft.name} can draft for {model.name}",
                why=f"the header of {one.path} names no vocabulary",
                next_step="use GGUFs with their tokenizer inside, or speculation = 'ngram'",
            )
    if model.vocabulary_hash != draft.vocabulary_hash:
        raise Refused(
            f"{draft.name} cannot draft for {model.name}",
            why="their vocabularies differ, so its tokens would mean other words",
            next_step="use a draft model of the same family",
        )
    asked = bool(wish.draft) or wish.speculation != "auto"
    yield Setting("speculation_type", "draft-simple", USER if asked else f"{draft.name} lies beside the model")
    yield Setting("draft_model", draft.path, USER if wish.draft else "it came with the model")
    tokens_because = USER if wish.draft_tokens else "llama.cpp's default; `stoker tune` will find better"
    yield Setting("draft_tokens", wish.draft_tokens or DEFAULT_DRAFT_TOKENS, tokens_because)
