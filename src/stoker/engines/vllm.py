"""vLLM: `vllm serve`, in a container or in a virtual environment of the user's.

Source of flags and metric names: arg_utils.py and /metrics of 0.20 to 0.33; log signs: runs of 0.26 and 0.32.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from stoker.engines import BAR_TIME, UNKNOWN_HEAD, environment_of, promised_by, words_of
from stoker.records import LaunchSpec, LogForm, Plan, Setting, SettingValue, SpeculationKind, StageSign, Way

# Neutral name -> vLLM's flags for it, the newest first: the plan takes the first that the version in use has.
SPELLING = {
    "context": ("--max-model-len",),
    "parallel": ("--max-num-seqs",),
    "memory_share": ("--gpu-memory-utilization",),
    "cache_bytes": ("--kv-cache-memory-bytes",),
    "graph_sizes": ("--cudagraph-capture-sizes",),
    "graph_batch": ("--max-cudagraph-capture-size",),
    "batch_tokens": ("--max-num-batched-tokens",),
    "kv_type": ("--kv-cache-dtype",),
}

METRICS = {
    "prompt_tokens_total": "vllm:prompt_tokens_total",
    "generated_tokens_total": "vllm:generation_tokens_total",
    "draft_tokens_total": "vllm:spec_decode_num_draft_tokens_total",
    "accepted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total",
    "drafts_total": "vllm:spec_decode_num_drafts_total",
    "accepted_tokens_by_position_total": "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "requests_total": "vllm:request_success_total",
    "aborted_total": 'vllm:request_success_total{finished_reason="abort"}',
    "cached_tokens_total": "vllm:prompt_tokens_cached_total",
    "preemptions_total": "vllm:num_preemptions_total",
    "inter_token_seconds": "vllm:inter_token_latency_seconds",
    "requests_running": "vllm:num_requests_running",
    "requests_waiting": "vllm:num_requests_waiting",
    "cache_usage": "vllm:kv_cache_usage_perc",
}

# What older versions called them.
FORMER_METRICS = {
    "cache_usage": ("vllm:gpu_cache_usage_perc",),
    "cached_tokens_total": ("vllm:prefix_cache_hits_total",),
    "inter_token_seconds": ("vllm:time_per_output_token_seconds",),
}

# Of lines that say the same, the newest wording comes first. Runs of 0.26 and 0.32 said these; older ones are from reports.
STAGES = (
    StageSign("import", "since start", r"Initializing an? (?:V\d )?LLM engine|headless multiproc executor"),
    StageSign("import", "end", r"world_size=\d+ rank=\d+ .*distributed_init_method"),
    StageSign("import", "begin", r"Initializing an? (?:V\d )?LLM engine"),  # its workers import everything once more
    StageSign("connect", "begin", r"world_size=\d+ rank=\d+ .*distributed_init_method"),
    StageSign("connect", "end", r"rank \d+ in world size \d+ is assigned"),
    StageSign("weights", "amount", r"Checkpoint size: (?P<gib>[\d.]+) GiB", is_whole=True),
    StageSign("weights", "end", r"Loading weights took (?P<read>[\d.]+) seconds"),
    StageSign("weights", "end", r"Model loading took (?P<gib>[\d.]+) (?:GiB|GB)\b.*? and (?P<took>[\d.]+) seconds"),
    StageSign("weights", "end", r"Loading model weights took (?P<gib>[\d.]+) GB"),
    StageSign("weights", "end", r"Loading drafter model|Warming up model for the compilation"),
    StageSign("weights", "begin", r"Starting to load model|Loading model from scratch|Loading drafter model"),
    StageSign("compile", "end", r"Dynamo bytecode transform time: (?P<took>[\d.]+) s"),
    StageSign("compile", "end", r"Compiling a graph for .* takes (?P<took>[\d.]+) s"),
    StageSign("compile", "end", r"Directly load .*compiled graph.* took (?P<took>[\d.]+) s"),
    StageSign("compile", "end", r"torch\.compile (?:and .*)?(?:takes|took) (?P<took>[\d.]+) s in total"),
    StageSign("compile", "end", r"saved AOT compiled function"),
    StageSign("compile", "begin", r"for vLLM's torch\.compile|Warming up model for the compilation"),
    StageSign("autotune", "begin", r"\[Auto[Tt]uner\]: Autotuning process starts"),
    StageSign("autotune", "end", r"\[Auto[Tt]uner\]: Autotuning process ends"),
    StageSign("autotune", "end", r"\[Auto[Tt]uner\]: Tuning .*100%.*" + BAR_TIME),
    StageSign("graphs", "begin", r"Capturing (?:the model for )?(?:CUDA ?graphs|cudagraphs)"),
    StageSign("graphs", "end", r"Graph capturing finished in (?P<took>[\d.]+) secs"),
    StageSign("graphs", "end", r"Capturing CUDA graphs.*100%.*" + BAR_TIME),
    StageSign("warm-up", "end", r"Initial profiling/warmup run took (?P<took>[\d.]+) s"),
    StageSign("warm-up", "end", r"init engine \(.*\) took (?P<took>[\d.]+) s"),
    StageSign("other", "begin", r"init engine \(.*\) took"),
    StageSign("other", "end", r"Starting vLLM (?:API )?server"),
)
LOG = LogForm(
    # FlashInfer's own lines have a year; no line has a zone.
    stamp=r"(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) |\b\d{4}-)(?P<month>\d\d)-(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:,(?P<milli>\d{3}))?",
    tick_s=1.0,
    speaker=r"\([^()]* pid=(\d+)\)",
    starts=r"(?:vLLM API server version|█ +version|Launching vLLM \(v?) ?(?P<version>\d[^\s)]*)|non-default args: ",
    ready=r"Application startup complete",
    signs=STAGES,
)

# How a model begins a call of a tool, and the parser that knows it; names as 0.32.0 registers them.
TOOL_MARKS = (
    (r"<tool_call>\s*<function=", "qwen3_coder"),
    (r"<tool_call>\s*\{", "hermes"),
    (r"\[TOOL_CALLS\]", "mistral"),
    (r"<\|tool_call>", "gemma4"),
    (r"<\|python_tag\|>", "llama3_json"),
    (r"<.tool.calls.begin.>", "deepseek_v3"),
)

PROMISES = {"tools": "--tool-call-parser", "reasoning": "--reasoning-parser"}
METHODS: dict[SpeculationKind, str] = {
    "eagle": "eagle", "eagle3": "eagle3", "mtp": "mtp", "draft": "draft_model", "ngram": "ngram",
}  # fmt: skip
LOOKUP_WORDS = 4
MOST_GRAPH_TOKENS = 512  # the most that its own default captures
# Chains alone: 0.32.0's configuration has no tree of drafts.
DRAFTING: dict[str, frozenset[SpeculationKind]] = {
    "draft_tokens": frozenset(METHODS),
    "draft_tiers": frozenset(METHODS),
    "lookup_min": frozenset({"ngram"}),
    "lookup_max": frozenset({"ngram"}),
}
MODULE = "openai.api_server"

# Its configuration of drafts is one flag of JSON, so no catalog of flags tells when that got an entry.
SINCE = {"draft_tiers": (0, 24, 0)}


class Vllm:
    """vLLM's OpenAI server."""

    name = "vllm"
    package = "vllm"
    metrics = METRICS
    former_metrics = FORMER_METRICS
    spelling = SPELLING
    images = ("vllm/vllm-openai", "*/vllm", "*/vllm-openai", "*/vllm-node")
    program = ("vllm", "serve")
    model_flag = "--model"
    formats = ("safetensors",)
    notable = (
        "--attention-backend",
        "--moe-backend",
        "--linear-backend",
        "--kv-cache-dtype",
        "--quantization",
        "--load-format",
    )
    layouts = ("transformers", "mistral")
    opens_unasked = True  # without --host it listens on every address
    reuses_connections = True
    share_covers_activations = True
    log_form = LOG
    tools_unforced = ""
    tools_unforbidden = "or start it with --exclude-tools-when-tool-choice-none"
    tool_words = "--enable-auto-tool-choice --tool-call-parser {parser}"
    tool_marks = TOOL_MARKS
    drafting = DRAFTING
    # It takes the longest match that there is, so a high most costs nothing; a low least finds more, and more that is wrong.
    lookups = ((2, 8), (3, 8))
    lookup_counts = ()
    lookup_s = None
    file_flags = ()
    inner_port_flag = ""
    inner_port_since = ()
    since = SINCE

    def render(self, plan: Plan, port: int) -> LaunchSpec:
        """Returns the server's words for a plan, listening on loopback; the model is the first of them."""
        program = plan.program or self.program
        address = ("--host", "127.0.0.1", "--port", str(port))
        return LaunchSpec(
            argv=(
                *program, *self._name_model(program, plan.model_path), "--served-model-name", plan.model, *address,
                *words_of(plan.settings),
            ),
            environment=environment_of(plan.settings),
            health_path="/health",
            key_variable="VLLM_API_KEY",  # and not --api-key, which every user of the machine may read
        )  # fmt: skip

    def _name_model(self, program: tuple[str, ...], path: str) -> tuple[str, ...]:
        """Returns the words that name the model: alone behind `vllm serve`, which warns of the flag."""
        # The old module reads a word alone and serves Qwen/Qwen3-0.6B, under the name of the model asked for (0.32.0).
        return (self.model_flag, path) if any(MODULE in word for word in program) else (path,)

    def spread(
        self, tensor: int, pipeline: int, rank: int, head: str | None, port: int, executor: str
    ) -> Mapping[str, SettingValue]:
        """Returns the flags of a rank: vLLM's own launch over several machines, or Ray's, where the head alone is vLLM."""
        sizes: dict[str, SettingValue] = {"--tensor-parallel-size": tensor, "--pipeline-parallel-size": pipeline}
        sizes["--distributed-executor-backend"] = executor
        if executor == "ray":
            return sizes
        place: dict[str, SettingValue] = {"--nnodes": tensor * pipeline, "--node-rank": rank}
        place |= {"--master-addr": head or UNKNOWN_HEAD, "--master-port": port}
        return sizes | place | ({"--headless": True} if rank else {})

    def speculate(self, way: Way, draft: str | None) -> Mapping[str, SettingValue]:
        """Returns the one flag that holds all of speculative decoding as JSON."""
        tokens = max((tier[2] for tier in way.draft_tiers or ()), default=0) or way.draft_tokens
        config: dict[str, object] = {"method": METHODS[way.kind or "ngram"], "num_speculative_tokens": tokens}
        if draft is not None:
            config["model"] = draft
        if way.kind == "ngram":  # of one alone, vLLM takes the other to be the same
            config["prompt_lookup_max"] = way.lookup_max or way.lookup_min or LOOKUP_WORDS
            config |= {"prompt_lookup_min": way.lookup_min} if way.lookup_min else {}
        if way.draft_tiers:
            config["num_speculative_tokens_per_batch_size"] = way.draft_tiers
        return {"--speculative-config": json.dumps(config, separators=(",", ":"))}

    def graph_sizes(self, batch: int, step_tokens: int) -> Mapping[str, SettingValue]:
        """Returns the batch sizes to capture: powers of two up to the largest; the default captures dozens more."""
        # They count tokens: with drafts each request has several, and where no size is a multiple of those nothing starts.
        batch = min(batch, max(1, MOST_GRAPH_TOKENS // step_tokens)) if step_tokens > 1 else batch
        sizes = [2**power for power in range(batch.bit_length()) if 2**power < batch]
        return {"graph_sizes": tuple(size * step_tokens for size in (*sizes, batch)), "graph_batch": batch * step_tokens}

    def release_of(self, version: str) -> str:
        """Returns the version as it is: releases are named by it."""
        return version

    def version_argv(self, server: str | None) -> tuple[str, ...] | None:
        """Returns None: the version is that of the package or of the image."""
        return None

    def parse_version(self, printed: str) -> str | None:
        """Returns the version in '0.26.0'."""
        found = re.search(r"\b(\d+\.\d+\.\d+\S*)", printed)
        return found[1] if found else None

    def promises(self, settings: Sequence[Setting], template: Iterable[str]) -> Mapping[str, str]:
        """Returns what its parsers promise: it takes calls and thoughts out of the text where it was given one for them."""
        return promised_by(PROMISES, settings)


ENGINE = Vllm()
