"""What a service does for its clients, as far as its plan and its model's headers tell. Pure."""

from __future__ import annotations

from stoker.plan.engine_choice import LLAMACPP
from stoker.records import Abilities, Model, Plan, SettingValue

SGLANG, VLLM = "sglang", "vllm"
VECTORS = frozenset({"--embedding", "--embeddings", "--is-embedding", "$LLAMA_ARG_EMBEDDINGS"})
RANKS = frozenset({"--rerank", "--reranking", "$LLAMA_ARG_RERANKING"})
POOLS = frozenset({"--runner", "--task", "--convert", "--pooling"})  # with these vLLM or llama.cpp may be anything
PROJECTOR = frozenset({"--mmproj", "--mmproj-url", "$LLAMA_ARG_MMPROJ"})
TOOL_PARSER, REASONING_PARSER, FORMAT, GRAMMAR = (
    "--tool-call-parser",
    "--reasoning-parser",
    "--reasoning-format",
    "--grammar-backend",
)
HARMONY, NATIVE = "gpt_oss", "mistral"  # a model's type, and a layout whose headers say less
ELSEWHERE = "--config"  # a file with more settings
NO = (False, "false", "0", "none")


def read_abilities(plan: Plan, model: Model) -> Abilities:
    """Returns what is known; nothing where settings stand in what was not read."""
    said = {_named(one.name): one.value for one in plan.settings}
    if ELSEWHERE in said or any(word.startswith("--") for word in plan.program) or POOLS & said.keys():
        return Abilities()
    if vectors := _is_on(said, VECTORS) or _is_on(said, RANKS):
        ranks = _is_on(said, RANKS)
        return Abilities(False, vectors and not ranks, ranks, False, None, False, False, False)
    if plan.engine == LLAMACPP:
        return _of_llamacpp(said, model)
    return _of_gpu_engine(plan.engine, said, model) if plan.engine in (VLLM, SGLANG) else Abilities()


def _of_llamacpp(said: dict[str, SettingValue], model: Model) -> Abilities:
    knows, thinks = model.template_features, None if not model.has_chat_template else "thinking" in model.template_features
    return Abilities(
        chat=model.has_chat_template or None,  # without one it takes a common form, which may be nonsense to the model
        embeddings=False,
        rerank=False,
        vision=bool(PROJECTOR & said.keys()),
        tools="tools" in knows or None,  # where the template has none it asks for calls in a form of its own
        reasoning=False if said.get(FORMAT) in NO else thinks,
        structured_output=True,  # by its grammars
    )


def _of_gpu_engine(engine: str, said: dict[str, SettingValue], model: Model) -> Abilities:
    parses = bool(said.get(TOOL_PARSER)) and (engine == SGLANG or _is_on(said, frozenset({"--enable-auto-tool-choice"})))
    unasked = (
        None if HARMONY in (model.model_type or "") else False
    )  # of such a model both engines read answers by themselves
    sees = None if model.has_vision or NATIVE in model.layouts else False  # pictures can be switched off by several flags
    return Abilities(
        chat=model.has_chat_template or None,
        vision=sees,
        tools=("tools" in model.template_features or None) if parses else unasked,
        reasoning=bool(said.get(REASONING_PARSER)) or unasked,
        structured_output=said.get(GRAMMAR) not in NO,
    )


def _named(name: str) -> str:
    return name if name.startswith("$") else name.lower().replace("_", "-")


def _is_on(said: dict[str, SettingValue], names: frozenset[str]) -> bool:
    return any(said[name] not in NO for name in names & said.keys())
