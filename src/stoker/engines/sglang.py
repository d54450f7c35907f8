"""SGLang: `python -m sglang.launch_server`, in a container or in a virtual environment of the user's.

Source of flags and metric names: server_args.py and /metrics of 0.5.9 to 0.5.23; log signs: runs of 0.5.16 on a GPU host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from stoker.engines import BAR_TIME, UNKNOWN_HEAD, environment_of, promised_by, words_of
from stoker.records import LaunchSpec, LogForm, Plan, Setting, SettingValue, SpeculationKind, StageSign, Tiers, Way

TIERS_FLAG = "--speculative-adaptive-config"

# Neutral name -> SGLang's flags for it, the newest first: the plan takes the first that the version in use has.
SPELLING = {
    "context": ("--context-length",),
    "parallel": ("--max-running-requests",),
    "memory_share": ("--mem-fraction-static",),
    "graph_batch": ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"),
    "batch_tokens": ("--chunked-prefill-size",),
    "kv_type": ("--kv-cache-dtype",),
    "cache_tokens": ("--max-total-tokens",),
    "metrics": ("--enable-metrics",),
    # 0.5.12 keeps n-grams of every length up to a depth; before, a window of least and most tokens was looked up.
    "lookup_max": ("--speculative-ngram-max-trie-depth", "--speculative-ngram-max-match-window-size"),
    "lookup_min": ("--speculative-ngram-min-match-window-size",),
    "lookup_breadth": ("--speculative-ngram-max-bfs-breadth",),
    "draft_adaptive": ("--speculative-adaptive",),
    "draft_tiers": (TIERS_FLAG,),
}

METRICS = {
    "prompt_tokens_total": "sglang:prompt_tokens_total",
    "generated_tokens_total": "sglang:generation_tokens_total",
    "requests_total": "sglang:num_requests_total",
    "aborted_total": "sglang:num_aborted_requests_total",
    "cached_tokens_total": "sglang:cached_tokens_total",
    "inter_token_seconds": "sglang:inter_token_latency_seconds",
    "requests_running": "sglang:num_running_reqs",
    "requests_waiting": "sglang:num_queue_reqs",
    "cache_usage": "sglang:token_usage",
    "verify_calls_total": "sglang:spec_verify_calls_total",
    "accept_length": "sglang:spec_accept_length",
    "accept_rate": "sglang:spec_accept_rate",
    "tokens_verified_per_step": "sglang:spec_num_draft_tokens",  # the slot of the model's own token included
}

# What older versions called them.
FORMER_METRICS: dict[str, tuple[str, ...]] = {}

# Runs of 0.5.16 said these; what is optional in them older versions leave out. What SGLang calls GB are GiB.
STAGES = (
    StageSign("import", "since start", r"Init torch distributed begin"),
    StageSign("connect", "begin", r"Init torch distributed begin"),
    StageSign("connect", "end", r"Init torch distributed ends\.(?: elapsed=(?P<took>[\d.]+) s)?"),
    StageSign("weights", "begin", r"Load weight begin"),
    StageSign("weights", "end", r"Load weight end\.(?:.*?elapsed=(?P<took>[\d.]+) s)?(?:.*?mem usage=(?P<gib>[\d.]+) GB)?"),
    StageSign("other", "end", r"Memory pool end"),
    StageSign("other", "begin", r"Load weight end"),  # from there on the cache is laid out
    StageSign("compile", "end", r"DeepGEMM warmup.*100%.*" + BAR_TIME),
    StageSign("autotune", "begin", r"Running FlashInfer autotune"),
    StageSign("autotune", "end", r"FlashInfer autotune completed"),
    StageSign("autotune", "end", r"\[Auto[Tt]uner\]: Tuning .*100%.*" + BAR_TIME),
    StageSign("graphs", "begin", r"Capture .*graph begin"),
    StageSign("graphs", "end", r"Capture .*graph end\.(?:.*?elapsed[=:] ?(?P<took>[\d.]+) s)?"),
    StageSign("warm-up", "begin", r"Application startup complete"),
    StageSign("warm-up", "end", r"The server is fired up"),
)
LOG = LogForm(
    stamp=r"\[(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?: [A-Z]+\d[^\]]*)?\]",
    tick_s=1.0,
    speaker=r"\[\d{4}-[\d-]+ [\d:]+ ([A-Z]+\d[^\]]*)\]",
    starts=r"server_args=ServerArgs\(",
    ready=r"The server is fired up and ready to roll",
    signs=STAGES,
)

# How a model begins a call of a tool, and the parser that knows it; names as 0.5.16 lists them.
TOOL_MARKS = (
    (r"<tool_call>\s*<function=", "qwen3_coder"),
    (r"<tool_call>\s*\{", "qwen"),
    (r"\[TOOL_CALLS\]", "mistral"),
    (r"<\|tool_call>", "gemma4"),
    (r"<\|python_tag\|>", "llama3"),
    (r"<.tool.calls.begin.>", "deepseekv3"),
)

PROMISES = {"tools": "--tool-call-parser", "reasoning": "--reasoning-parser"}
ALGORITHMS: dict[SpeculationKind, str] = {
    "eagle": "EAGLE", "eagle3": "EAGLE3", "mtp": "EAGLE", "draft": "STANDALONE", "ngram": "NGRAM",
}  # fmt: skip
TREES: frozenset[SpeculationKind] = frozenset({"eagle", "eagle3", "mtp", "draft"})
NGRAM: frozenset[SpeculationKind] = frozenset({"ngram"})
DRAFTING: dict[str, frozenset[SpeculationKind]] = {
    "draft_tokens": TREES | NGRAM,
    "draft_steps": TREES,
    "draft_topk": TREES | NGRAM,
    "draft_adaptive": TREES - {"draft"},  # by its own page EAGLE and EAGLE3 alone, with top-k 1
    "draft_tiers": TREES - {"draft"},  # tiers of one number each: nothing is left to be adapted but to the requests
    "lookup_min": NGRAM,
    "lookup_max": NGRAM,
}
# The flag of tiers came with 0.5.12, those by requests with 0.5.13, and such as draft nothing with 0.5.14.
SINCE = {"draft_tiers": (0, 5, 14)}


class SgLang:
    """SGLang's server."""

    name = "sglang"
    package = "sglang"
    metrics = METRICS
    former_metrics = FORMER_METRICS
    spelling = SPELLING
    images = ("lmsysorg/sglang", "*/sglang", "*/dgx-spark-sglang")
    program = ("python3", "-m", "sglang.launch_server")
    model_flag = "--model-path"
    formats = ("safetensors",)
    notable = (
        "--attention-backend",
        "--moe-runner-backend",
        "--fp4-gemm-runner-backend",
        "--kv-cache-dtype",
        "--quantization",
        "--load-format",
    )
    layouts = ("transformers",)
    opens_unasked = False
    reuses_connections = True
    share_covers_activations = False
    log_form = LOG
    tools_unforced = tools_unforbidden = ""
    tool_words = "--tool-call-parser {parser}"
    tool_marks = TOOL_MARKS
    drafting = DRAFTING
    lookups = ((None, 6), (None, 12))  # beside 18, the default of all versions since 0.5.12
    lookup_counts = ()
    lookup_s = None
    file_flags = (TIERS_FLAG,)
    inner_port_flag = "--nccl-port"
    inner_port_since = (0, 5, 9)  # the oldest whose flags were read; some of 2025 do not have it
    since = SINCE

    def render(self, plan: Plan, port: int) -> LaunchSpec:
        """Returns the server's words for a plan, listening on loopback; a container brings its own address."""
        named = (self.model_flag, plan.model_path, "--served-model-name", plan.model)
        address = ("--host", "127.0.0.1", "--port", str(port))
        return LaunchSpec(
            argv=(*(plan.program or self.program), *named, *address, *words_of(plan.settings)),
            environment=environment_of(plan.settings),
            health_path="/health",
            key_variable=None,  # SGLang takes a key from its command line alone, where every user reads it: loopback instead
        )

    def spread(
        self, tensor: int, pipeline: int, rank: int, head: str | None, port: int, executor: str
    ) -> Mapping[str, SettingValue]:
        """Returns the flags of a rank: SGLang's own launch over several machines; Ray is none of its ways here."""
        return {
            "--tensor-parallel-size": tensor, "--pipeline-parallel-size": pipeline, "--nnodes": tensor * pipeline,
            "--node-rank": rank, "--dist-init-addr": f"{head or UNKNOWN_HEAD}:{port}",
        }  # fmt: skip

    def speculate(self, way: Way, draft: str | None) -> Mapping[str, SettingValue]:
        """Returns the flags of one way to draft; but for n-grams it counts the model's own token among those it verifies."""
        tokens = max((tier[2] for tier in way.draft_tiers or ()), default=0) or way.draft_tokens or 1
        flags: dict[str, SettingValue] = {"--speculative-algorithm": ALGORITHMS[way.kind or "ngram"]}
        if draft is not None:
            flags["--speculative-draft-model-path"] = draft
        if way.kind == "ngram":
            lookup = {"lookup_min": way.lookup_min, "lookup_max": way.lookup_max, "lookup_breadth": way.draft_topk}
            flags |= {name: value for name, value in lookup.items() if value is not None}
        elif way.draft_adaptive:  # it takes steps and draft tokens from its own tiers
            return flags | {"--speculative-eagle-topk": 1, "draft_adaptive": True}
        else:
            if way.draft_tiers:
                flags |= {"draft_adaptive": True, "draft_tiers": _say_tiers(way.draft_tiers)}
            flags |= {"--speculative-num-steps": way.draft_steps or tokens, "--speculative-eagle-topk": way.draft_topk or 1}
        # Always said: left out it is None in some versions, and comparing with None ends the start.
        return flags | {"--speculative-num-draft-tokens": tokens + (way.kind != "ngram")}

    def graph_sizes(self, batch: int, step_tokens: int) -> Mapping[str, SettingValue]:
        """Returns the flags that bound graph capture; SGLang chooses the sizes below the bound itself."""
        return {"graph_batch": batch}

    def release_of(self, version: str) -> str:
        """Returns the version as it is: releases are named by it."""
        return version

    def version_argv(self, server: str | None) -> tuple[str, ...] | None:
        """Returns None: the version is that of the package or of the image."""
        return None

    def parse_version(self, printed: str) -> str | None:
        """Returns the version in '0.5.16'."""
        found = re.search(r"\b(\d+\.\d+\.\d+\S*)", printed)
        return found[1] if found else None

    def promises(self, settings: Sequence[Setting], template: Iterable[str]) -> Mapping[str, str]:
        """Returns what its parsers promise: it takes calls and thoughts out of the text where it was given one for them."""
        return promised_by(PROMISES, settings)


def _say_tiers(tiers: Tiers) -> str:
    """Returns the tiers as SGLang reads them from a file: from so many requests on, the steps it may choose from."""
    return json.dumps({str(first): {"candidate_steps": [tokens]} for first, _, tokens in tiers}, separators=(",", ":"))


ENGINE = SgLang()
