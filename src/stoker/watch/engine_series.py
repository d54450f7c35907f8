"""What Stoker tells of every engine under the same names, whatever the engine itself calls it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Joined = Literal["sum", "max", "mean"]


class EngineSeries(NamedTuple):
    """One series: its name without `_total`, its kind, what it is, and the neutral names in `Engine.metrics` for it.

    `joined` says what is made of several values, one for each of an engine's ranks or labels.
    """

    name: str
    kind: Kind
    what: str
    neutral: tuple[str, ...]
    joined: Joined = "sum"


ENGINE_SERIES = (
    EngineSeries("stoker_engine_requests", "counter", "Requests that the engine finished.", ("requests_total",)),
    EngineSeries("stoker_engine_requests_aborted", "counter", "Requests that ended before their time.", ("aborted_total",)),
    EngineSeries("stoker_engine_preemptions", "counter", "Requests put off for want of cache.", ("preemptions_total",)),
    EngineSeries("stoker_engine_prompt_tokens", "counter", "Tokens of prompts.", ("prompt_tokens_total",)),
    EngineSeries("stoker_engine_cached_tokens", "counter", "Those found in its cache.", ("cached_tokens_total",)),
    EngineSeries("stoker_engine_generated_tokens", "counter", "Tokens generated.", ("generated_tokens_total",)),
    EngineSeries("stoker_engine_draft_tokens", "counter", "Draft tokens proposed.", ("draft_tokens_total",)),
    EngineSeries("stoker_engine_accepted_tokens", "counter", "Draft tokens accepted.", ("accepted_tokens_total",)),
    EngineSeries("stoker_engine_verify_steps", "counter", "Verify steps.", ("drafts_total", "verify_calls_total")),
    EngineSeries("stoker_engine_requests_running", "gauge", "Requests that it works on.", ("requests_running",)),
    EngineSeries("stoker_engine_requests_waiting", "gauge", "Requests in the engine's own line.", ("requests_waiting",)),
    EngineSeries("stoker_engine_cache_used_ratio", "gauge", "Share of its cache in use.", ("cache_usage",), "max"),
    EngineSeries(
        "stoker_engine_accept_rate", "gauge", "Accepted / proposed draft tokens of its last interval, where it says so.",
        ("accept_rate",), "mean",
    ),
    EngineSeries(
        "stoker_engine_accept_length", "gauge", "Tokens a verify step of its last interval, where it says so.",
        ("accept_length",), "mean",
    ),
    EngineSeries(
        "stoker_engine_tokens_verified_per_step", "gauge", "Draft tokens a step and the model's own one, where it says so.",
        ("tokens_verified_per_step",), "max",
    ),
    EngineSeries(
        "stoker_engine_inter_token_seconds", "histogram", "ITL, where the engine measures it.", ("inter_token_seconds",)
    ),
)  # fmt: skip
