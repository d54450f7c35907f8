"""What is looked for in a log: the rules' signs, how engines speak, what faults look like, and what tells of the launch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from stoker.diagnose.scan import Sign, make_sign
from stoker.engines import find, names
from stoker.errors import StokerError
from stoker.records import Rule
from stoker.supervise.logs import LAUNCH, PROBES_BEGIN, PROBES_END

# Words that no other program says; the signs of its stages tell an engine better, but one that died at once said none.
SPEAKERS = {
    "vllm": r"\bvllm\b|\[vllm\.py:",
    "sglang": r"\bsglang\b|sgl_kernel\b",
    "llamacpp": r"\b(?:llama_(?:model|server|context|kv)|ggml_|gguf_|xllamacpp)|stoker-embedded|llama\.cpp|llama-server",
}
# What one says that was told to stop, by a person, a unit or Stoker, and what it says last then: what goes wrong between
# these ends nothing. vLLM's core alone being told is no stop, since its server does so as well when it falls over.
STOPS = {
    "vllm": r"\[shutdown\] API server: shutdown triggered",
    "sglang": r"SIGTERM received\. signum",
    "llamacpp": r"cleaning up before exit",
}
STOPPED = {"vllm": r"Application shutdown complete", "sglang": r"kill_process_tree called"}
# How a fault looks that no rule knows, the most telling first; only for `unknown`.
FAULTS = (
    r"(?:^|[\s.\]|])\w*(?:Error|Exception)(?:: |$)",
    r"[Ss]egmentation fault|core dumped|SIGSEGV|SIGABRT|SIGKILL|terminate called|Aborted|\bpanic: ",
    r"(?i)\bfatal\b",
    r"\b(?:ERROR|Error|error)\b:? ",
    r"(?i)\bassert(?:ion)?\b.* failed|\bfailed (?:to|with)\b|\bcannot (?:open|find|load|allocate)\b|\bKilled\b",
)
CLUES = {
    "arguments": r"non-default args: (\{.*\})",
    "server_args": r"server_args=ServerArgs\((.*)",
    "gpu": r"\bNVIDIA[ _-]+(GB10|GB200|B200|H200|H100|A100|L40S?)\b",
    "sm": r"(?:cuda|compute) capability (?P<sm>\d+\.\d)\b|(?:ptxas|target|scatter).*\bsm_?(?P<digits>121)[af]?\b",
    "arch": r"\b(aarch64|x86_64)-linux-gnu",
    "platforms": r"platform \(linux/(?P<image>\w+)[^)]*\) does not match the (?:detected host|expected) platform"
    r" \(linux/(?P<host>\w+)",
    "manifest": r"no matching manifest for linux/(?P<host>\w+)",
    "nccl": r"NCCL INFO .*(?:\bnNodes (?P<nodes>\d+)\b|\bnranks (?P<alone>1)\b|\bChannel .* via NET/(?P<between>\w))",
    "architecture": r"Resolved architecture: (\w+)|general\.architecture\s+str\s+= (\w+)",
    "model": r"Starting to load model (\S+?)\.\.\.|load_model: loading model '([^']+)'",
    "llm": r"LLM engine \(v(?P<version>[\d.]+\S*?)\) with config: model='(?P<model>[^']+)'",
}


@cache
def engine_signs() -> tuple[Sign, ...]:
    """Returns what tells whose log it is, when a start began, and when it was ready."""
    found = []
    for name in names():
        form = find(name).log_form
        found += [make_sign("start", name, form.starts), make_sign("ready", name, form.ready)]
        found.append(make_sign("stop", name, STOPS[name]))
        found += [make_sign("stopped", name, STOPPED[name])] if name in STOPPED else []
        found += [make_sign("stage", name, pattern) for pattern in dict.fromkeys(sign.pattern for sign in form.signs)]
        found.append(make_sign("speaker", name, SPEAKERS[name]))
    return tuple(found)


def all_signs(rules: Iterable[Rule]) -> list[Sign]:
    """Returns everything to look for, with the signs of these rules."""
    told = [_of_rule(rule, sign) for rule in rules for sign in rule.signs]
    clues = [make_sign("clue", name, pattern) for name, pattern in CLUES.items()]
    marks = [make_sign("launch", "stoker", LAUNCH.pattern), *_of_probes()]
    return [*told, *clues, *marks, *engine_signs(), *(make_sign("fault", str(rank), one) for rank, one in enumerate(FAULTS))]


def _of_probes() -> Iterable[Sign]:
    yield make_sign("probes begin", "stoker", f"^{re.escape(PROBES_BEGIN)}$")
    yield make_sign("probes end", "stoker", f"^{re.escape(PROBES_END)}$")


def _of_rule(rule: Rule, sign: str) -> Sign:
    try:
        return make_sign("rule", rule.id, sign)
    except (ValueError, re.error) as problem:  # only of a rule that the user wrote; those that ship are tested
        raise StokerError(
            f"the sign {sign!r} of the rule {rule.id} cannot be looked for", why=str(problem),
            next_step=f"mend it in {rule.local or 'its file'}", rule=rule.id,
        ) from problem  # fmt: skip
