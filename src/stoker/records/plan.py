"""From a wish to a plan, and from a plan to the words that start an engine."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stoker.records.base import Record

SpeculationKind = Literal["off", "draft", "ngram"]
ReasoningKind = Literal["auto", "on", "off"]
SettingValue = str | int | float | bool


class Wish(Record, frozen=True):
    """What a person asked for: which model to serve, and the few things they chose themselves."""

    name: str
    model: Annotated[str, msgspec.Meta(min_length=1)]
    engine: str = "llamacpp"
    served_name: str | None = None
    port: int | None = None
    context: int | None = None
    parallel: int | None = None
    speculation: SpeculationKind = "off"
    draft: str | None = None
    draft_tokens: int | None = None
    reasoning: ReasoningKind = "auto"
    gpu_layers: int | None = None
    threads: int | None = None
    server: str | None = None


class Setting(Record, frozen=True):
    """One engine setting and who chose it."""

    name: str
    value: SettingValue
    because: str


class Plan(Record, frozen=True):
    """How one service will run: every setting with its reason, and the memory it should need.

    `plan_id` is a digest of everything that decides the launch. `port` 0 means a free one, picked at launch.
    """

    plan_id: str
    service: str
    model: str
    model_path: str
    revision: str
    engine: str
    server: str | None
    port: int
    settings: tuple[Setting, ...]
    memory_need_bytes: int
    memory_because: str
    engine_version: str | None = None


class LaunchSpec(Record, frozen=True):
    """The exact program to run: words and environment, never a shell line."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    health_path: str
    key_variable: str | None
