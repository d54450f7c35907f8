"""llama.cpp: the server inside the `xllamacpp` wheel in a process of its own, or a `llama-server` of the user's.

Both take the same words, since the embedded one reads llama-server's flags. Source: `llama-server --help`, build 11549.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from stoker.engines import environment_of, words_of
from stoker.records import MIB, LaunchSpec, LogForm, Plan, Setting, SettingValue, SpeculationKind, StageSign, Way

DEFAULT_CONTEXT_TOKENS = 16384
DEFAULT_PARALLEL = 4
DEFAULT_DRAFT_TOKENS = 3
MOST_CONTEXT_TOKENS = 2**31 - 1  # llama.cpp counts positions in 32 bits
# Measured with the demo model on 2 cores, build 11549: 1,910 tok/s on one thread, 2,110 on two; with both cores busy
# otherwise 14 tok/s on two, since each layer waits for the slower thread.
SMALL_MODEL_BYTES = 64 * MIB
# Measured on x86-64 with build 11549 and the demo model: the server process holds 80 MiB before any weights, and its
# compute buffers grow with the vocabulary (512 positions of float32 logits) and the width of the model.
PROCESS_BYTES = 96 * MIB
COMPUTE_FLOOR_BYTES = 64 * MIB
COMPUTE_SHARE = 0.05

EMBEDDED_MODULE = "stoker.embedded"
KEY_VARIABLE = "LLAMA_API_KEY"  # in the environment and not in argv, which every user of the machine may read

SWITCHES = {
    "context_total": "--ctx-size",
    "parallel": "--parallel",
    "gpu_layers": "--n-gpu-layers",
    "threads": "--threads",
    "prompt_cache_mib": "--cache-ram",
    "speculation_type": "--spec-type",
    "draft_model": "--spec-draft-model",
    "draft_tokens": "--spec-draft-n-max",
    "lookup_tokens": "--spec-ngram-simple-size-n",
    "lookup_draft_tokens": "--spec-ngram-simple-size-m",
    "batch_tokens": "--batch-size",
    "micro_batch_tokens": "--ubatch-size",
    "reasoning": "--reasoning",
}

# Each sign: what the log says, and what it means to the person who reads it; seen with build 11549 and broken files.
AMOUNT = r"(?:(?P<gib>[\d.]+) GiB|(?P<mib>[\d.]+) MiB)"
# As it speaks unasked (verbosity 3), build 11549 tells the reading, the context and the empty run only together.
STAGES = (
    StageSign("import", "since start", r"load_model: loading model '|(?:main|init): loading model"),
    StageSign("weights", "amount", r"print_info: file size\s+= " + AMOUNT, is_whole=True),
    StageSign("weights", "amount", r"model buffer size =\s+" + AMOUNT),
    StageSign(
        "weights", "end", r"constructing llama_context|warming up the model|llama threadpool init|initializing, n_slots"
    ),
    StageSign("weights", "begin", r"load_model: loading model '|loading draft model '"),
    StageSign("warm-up", "begin", r"warming up the model"),
    StageSign("warm-up", "end", r"llama threadpool init|initializing, n_slots|initializing slots"),
    StageSign("other", "begin", r"load_model: initializing, n_slots|initializing slots"),
    StageSign("other", "end", r"(?:main|init): model loaded"),
)
LOG = LogForm(
    stamp=r"(?:^|\s)(?P<minute>\d+)\.(?P<second>\d\d)\.(?P<milli>\d{3})\.(?P<micro>\d{3}) [DIWE] ",
    tick_s=1e-6,
    speaker=r"(?!)",  # one process
    starts=r"\bbuild(?:_info)?: b?(?P<version>[1-9]\d*)?|init: initializing \.\.\.",
    ready=r"\blistening on http",
    signs=STAGES,
)

SPELLING = {"context": ("--ctx-size",), "parallel": ("--parallel",), "batch_tokens": ("--batch-size",)}
NGRAM: frozenset[SpeculationKind] = frozenset({"ngram"})
DRAFTING: dict[str, frozenset[SpeculationKind]] = {"draft_tokens": NGRAM | {"draft"}, "lookup_min": NGRAM}

METRICS = {
    "prompt_tokens_total": "llamacpp:prompt_tokens_total",
    "cached_tokens_total": "llamacpp:prompt_tokens_cached_total",
    "generated_tokens_total": "llamacpp:tokens_predicted_total",
    "draft_tokens_total": "llamacpp:spec_decode_num_draft_tokens_total",
    "accepted_tokens_total": "llamacpp:spec_decode_num_accepted_tokens_total",
    "drafts_total": "llamacpp:spec_decode_num_drafts_total",
    "accepted_tokens_by_position_total": "llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
    "requests_running": "llamacpp:requests_processing",
    "requests_waiting": "llamacpp:requests_deferred",
}

# What older versions called them.
FORMER_METRICS: dict[str, tuple[str, ...]] = {}

# With one of these it does not read calls as the model's own template writes them.
OTHER_TEMPLATE = frozenset({"--no-jinja", "--chat-template", "--chat-template-file", "--skip-chat-parsing"})


class LlamaCpp:
    """llama.cpp's server, embedded or external."""

    name = "llamacpp"
    package = "xllamacpp"
    metrics = METRICS
    former_metrics = FORMER_METRICS
    spelling = SPELLING
    images = ("ggml-org/llama.cpp", "*/llama-server", "*/llama.cpp")
    program = ("llama-server",)
    formats = ("gguf",)
    notable = ("--flash-attn", "--cache-type-k", "--n-gpu-layers")
    layouts = ("gguf",)
    opens_unasked = False
    # An idle one holds one of its few threads for 5 s (cpp-httplib); behind a stream it is closed, which no header says.
    reuses_connections = False
    share_covers_activations = False
    log_form = LOG
    tools_unforced = (
        "llama.cpp itself does not hold this model to it, as seen in build 11549, and no flag of its changes that: your"
        " set-up has no fault. Look whether a call came before you use one, or serve clients that force calls with another"
        " engine"
    )
    tools_unforbidden = "llama.cpp has no switch that keeps them from the model"
    tool_words = "--jinja"  # it knows the calls by the template
    tool_marks = ((r"<tool_call>|\[TOOL_CALLS\]|<\|tool_call>|<\|python_tag\|>|<.tool.calls.begin.>", ""),)
    drafting = DRAFTING
    lookups = ((3, None), (6, None))  # beside 12 with 48 draft tokens, its own default
    lookup_counts = (8, 16, 32)
    lookup_s = 25e-6  # on a core of a server: 24 to 44 µs (decision 0047)
    file_flags = ()
    inner_port_flag = ""
    inner_port_since = ()
    since: Mapping[str, tuple[int, int, int]] = {}

    def spread(
        self, tensor: int, pipeline: int, rank: int, head: str | None, port: int, executor: str
    ) -> Mapping[str, SettingValue]:
        """Returns nothing: llama.cpp's way over several machines, RPC, is experimental, and no plan is made for it."""
        return {}

    def render(self, plan: Plan, port: int) -> LaunchSpec:
        """Returns llama-server's words for a plan; the program is this Python unless there is a server or an image."""
        switches = (word for setting in plan.settings for word in _words(setting))
        address = ("--host", "127.0.0.1", "--port", str(port))
        named = ("--model", plan.model_path, "--alias", plan.model)
        return LaunchSpec(
            argv=(
                *self._program(plan),
                *named,
                *address,
                "--metrics",
                "--jinja",
                "--no-webui",
                *switches,
                *words_of(plan.settings),
            ),
            # A crash would start gdb, and bury the line that says why.
            environment=(("GGML_NO_BACKTRACE", "1"), *environment_of(plan.settings)),
            health_path="/health",
            key_variable=KEY_VARIABLE,
        )

    def _program(self, plan: Plan) -> tuple[str, ...]:
        if plan.image is not None:
            return plan.program or self.program
        return (plan.server,) if plan.server else (sys.executable, "-P", "-m", EMBEDDED_MODULE)

    def speculate(self, way: Way, draft: str | None) -> Mapping[str, SettingValue]:
        """Returns the settings of one way to draft, by the names of `SWITCHES`."""
        if way.kind == "ngram":
            sizes = {"lookup_tokens": way.lookup_min, "lookup_draft_tokens": way.draft_tokens}
            return {"speculation_type": "ngram-simple"} | {name: value for name, value in sizes.items() if value is not None}
        chosen: dict[str, SettingValue] = {"speculation_type": "draft-simple", "draft_tokens": way.draft_tokens or 1}
        return chosen | ({"draft_model": draft} if draft else {})

    def graph_sizes(self, batch: int, step_tokens: int) -> Mapping[str, SettingValue]:
        """Returns nothing: llama.cpp captures its graphs as it goes."""
        return {}

    def release_of(self, version: str) -> str:
        """Returns the build in '2026.10.11549', the wheel's version, and in 'b11549'."""
        return version.rpartition(".")[2].lstrip("b")

    def version_argv(self, server: str | None) -> tuple[str, ...] | None:
        """Returns the words that ask an external server for its version."""
        return (server, "--version") if server else None

    def parse_version(self, printed: str) -> str | None:
        """Returns the build in 'version: 11549 (abc1234)'."""
        found = re.search(r"version:\s*(\S+)", printed)
        return found[1] if found else None

    def promises(self, settings: Sequence[Setting], template: Iterable[str]) -> Mapping[str, str]:
        """Returns what the model's own template promises, unless it is not used; and thinking, where that is switched on."""
        said = {one.name: one.value for one in settings}
        tools = {} if OTHER_TEMPLATE & said.keys() or "tools" not in template else {"tools": "its chat template"}
        return tools | ({"reasoning": "`reasoning = 'on'`"} if said.get("reasoning") == "on" else {})


def _words(setting: Setting) -> tuple[str, ...]:
    switch = SWITCHES.get(setting.name)
    return (switch, str(setting.value)) if switch else ()


ENGINE = LlamaCpp()
