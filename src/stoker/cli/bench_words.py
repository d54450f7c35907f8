"""Reads the words of `stoker bench`: options that take several values, and limits."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stoker.records import BenchSlo

NUMBER = re.compile(r"\d+(\.\d+)?[kKmM]?")
LIMIT = re.compile(r"(ttft|itl|e2e)=(\d+(?:\.\d+)?)(ms|s)")
FIELDS = {"ttft": "ttft_s", "itl": "itl_token_s", "e2e": "e2e_s"}
UNITS = {"ms": 0.001, "s": 1.0}
WORDS = "stoker.bench.words"  # where a context has the words that are kept with a run


class ManyValues(click.Command):
    """A command whose options with `multiple` take all numbers that follow: `--pp 512 2048` as `--pp 512 --pp 2048`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Says the option again before each further number."""
        many = {name for one in self.params if isinstance(one, click.Option) and one.multiple for name in one.opts}
        said: list[str] = []
        option, has_value = "", False
        for word in args:
            is_more = option and has_value and NUMBER.fullmatch(word)
            said += [option, word] if is_more else [word]
            if word in many:
                option, has_value = word, False
            elif option and not has_value:
                has_value = True
            elif not is_more:
                option = ""
        return super().parse_args(ctx, said)


class Question(ManyValues):
    """What is to be measured; `--resume RUN` with no other question asks what that run asked."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Notes the words in the context, for the run that keeps them."""
        which = next((after for word, after in pairwise(args) if word == "--resume"), None)
        words = args if which is None else _asked_again(args, which)
        ctx.meta[WORDS] = ("bench", *words)
        return super().parse_args(ctx, words)


def _asked_again(args: list[str], which: str) -> list[str]:
    from stoker.config import find_paths
    from stoker.flows.bench_keeping import question_of, words_of_unfinished

    return args if question_of(args) else [*words_of_unfinished(find_paths(), which), *args]


def slo(said: str) -> BenchSlo:
    """Returns the limits of a good request: `ttft=500ms,itl=50ms`."""
    from stoker.records import BenchSlo

    found = [LIMIT.fullmatch(part.strip()) for part in said.split(",")]
    if not all(found):
        raise click.BadParameter(f"{said!r} is no list of limits: write ttft=500ms,itl=50ms,e2e=10s, or some of them")
    limits = {FIELDS[one[1]]: float(one[2]) * UNITS[one[3]] for one in found if one}
    return BenchSlo(**limits)


def share(said: str) -> float:
    """Returns a share: 2% or 0.02."""
    text, is_percent = said.removesuffix("%"), said.endswith("%")
    try:
        value = float(text) / (100 if is_percent else 1)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise click.BadParameter(f"{said!r} is no share: write 2% or 0.02")
    return value


def content(said: str) -> str:
    """Returns a content: the name of one of ours, or a file's whole path."""
    return said if said in ("code", "prose", "chat") else str(Path(said).absolute())
