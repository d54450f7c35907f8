"""The engines Stoker can start: one file each, found by listing this folder; each defines `ENGINE`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from stoker.errors import WrongUse
from stoker.records import LaunchSpec, LogForm, Plan, Setting, SettingValue, SpeculationKind, Way

Signs = tuple[tuple[str, str], ...]
UNKNOWN_HEAD = "HEAD"  # stands in words for the head's address where nobody knows it
# What a progress bar says of its own time, as in ` 10/10 [01:29<00:00, 8.92s/it]`.
BAR_TIME = r"\[(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d\d)<"
TAG_VERSION = re.compile(r"(?:^|[-_])v?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)(?![\d.])")


class Engine(Protocol):
    """What every engine file tells about its engine; nothing here touches the machine.

    `metrics` are its own names for what all engines count, by neutral names, and `former_metrics` what older versions called
    them; a name may have labels. `tool_words` make it look for calls of tools; `tool_marks` are the beginnings of calls in a
    model's text, each with its parser. `tools_unforced` and `tools_unforbidden` say what to do where `tool_choice` does not
    hold the model to a call, or does not keep it from one; empty where nothing is known of this engine. `drafting` are the
    keys of a service's table that tell it how to draft, each with the kinds for which it does. `lookups` are least and most
    tokens of n-gram lookup that are worth a try beside the plan's own; `lookup_counts` the draft tokens to try with each,
    empty where lookup is like other drafts; `lookup_s` the seconds that looking adds to a step, None where unknown.
    `file_flags` name a file: a plan may say its text instead, and the launch writes it. `inner_port_flag` names the port by
    which its own processes meet, where it picks one long before it listens on it, and `inner_port_since` the first release
    that is known to have it; empty where it does not. `since` is the release from which on it knows a key of a service's
    table that no flag of its own tells.
    """

    name: str
    package: str | None
    metrics: dict[str, str]
    former_metrics: Mapping[str, tuple[str, ...]]
    spelling: Mapping[str, tuple[str, ...]]
    images: tuple[str, ...]
    program: tuple[str, ...]
    formats: tuple[str, ...]
    notable: tuple[str, ...]
    layouts: tuple[str, ...]
    opens_unasked: bool
    reuses_connections: bool
    share_covers_activations: bool
    log_form: LogForm
    tool_words: str
    tool_marks: Signs
    tools_unforced: str
    tools_unforbidden: str
    drafting: Mapping[str, frozenset[SpeculationKind]]
    lookups: tuple[tuple[int | None, int | None], ...]
    lookup_counts: tuple[int, ...]
    lookup_s: float | None
    file_flags: tuple[str, ...]
    inner_port_flag: str
    inner_port_since: tuple[int, ...]
    since: Mapping[str, tuple[int, int, int]]

    def speculate(self, way: Way, draft: str | None) -> Mapping[str, SettingValue]:
        """Returns what says a way to draft: flags, or neutral names of `spelling` where versions call it differently."""

    def graph_sizes(self, batch: int, step_tokens: int) -> Mapping[str, SettingValue]:
        """Returns the settings, by neutral name, that bound graph capture to batches of at most `batch` requests.

        `step_tokens` is how many tokens of each request one step computes: one, and those that were drafted.
        """

    def spread(
        self, tensor: int, pipeline: int, rank: int, head: str | None, port: int, executor: str
    ) -> Mapping[str, SettingValue]:
        """Returns the flags of one rank of several machines that serve one model; none where the engine knows no such thing.

        `head` is the address of rank 0, None where it is unknown: the words then name it `HEAD`.
        """

    def render(self, plan: Plan, port: int) -> LaunchSpec:
        """Returns the program to run for a plan, listening on a port of the loopback interface."""

    def release_of(self, version: str) -> str:
        """Returns a version as the rules name it: llama.cpp's builds are only counted."""

    def version_argv(self, server: str | None) -> tuple[str, ...] | None:
        """Returns the words that print the engine's version, or None where the package's metadata tells it."""

    def parse_version(self, printed: str) -> str | None:
        """Returns the version in what those words printed."""

    def promises(self, settings: Sequence[Setting], template: Iterable[str]) -> Mapping[str, str]:
        """Returns what a launch with these settings promises its clients, each by its probe's name, with what promises it.

        `template` is what the model's chat template can do.
        """


def names() -> list[str]:
    """Returns the names of all engines in this folder."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__))


def find(name: str) -> Engine:
    """Returns one engine; raises WrongUse with the names that exist."""
    if name not in names():
        raise WrongUse(f"there is no engine called `{name}`", next_step=f"choose one of: {', '.join(names())}")
    engine: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    return engine


def engine_of_image(image: str) -> str | None:
    """Returns the engine inside a container image, by the image's name; None where no engine knows it."""
    repository = image_parts(image)[0]
    return next((name for name in names() if any(fnmatchcase(repository, known) for known in find(name).images)), None)


def image_parts(image: str) -> tuple[str, str]:
    """Returns an image's repository without its registry, and its tag: ('lmsysorg/sglang', 'latest-cu130')."""
    rest, _, digest = image.partition("@")
    head, _, last = rest.rpartition("/")
    last, _, tag = last.partition(":")
    folders = [part for part in head.split("/") if part]
    if len(folders) > 1 and ("." in folders[0] or ":" in folders[0]):
        folders = folders[1:]
    return "/".join([*folders, last]), tag or digest


def version_in_tag(tag: str) -> str | None:
    """Returns the engine's version where a tag tells it: 'v0.5.12-cu130' does, '26.05-py3' and 'nightly-...' do not."""
    found = TAG_VERSION.search(tag)
    return found[1] if found else None


def words_of(settings: Iterable[Setting]) -> tuple[str, ...]:
    """Returns the words of all settings that are said in the engine's own words; a switch is its name alone."""
    return tuple(word for setting in settings if setting.name.startswith("--") for word in _words(setting))


def _words(setting: Setting) -> tuple[str, ...]:
    value = setting.value
    if isinstance(value, bool) and "." not in setting.name:
        return (setting.name,) if value else ()
    if isinstance(value, bool):  # an entry of a flag that takes JSON: --kernel-config.enable_x false
        return (setting.name, str(value).lower())
    values = value if isinstance(value, tuple) else (value,)
    return (setting.name, *map(str, values))


def environment_of(settings: Iterable[Setting]) -> tuple[tuple[str, str], ...]:
    """Returns the variables among the settings, `$NAME`, as pairs."""
    return tuple((setting.name[1:], str(setting.value)) for setting in settings if setting.name.startswith("$"))


def promised_by(flags: Mapping[str, str], settings: Iterable[Setting]) -> dict[str, str]:
    """Returns each probe whose flag is said and switched on, with its words."""
    said = {one.name: one for one in settings if one.value not in (False, "", "none")}
    return {probe: " ".join(_words(said[flag])) for probe, flag in flags.items() if flag in said}
