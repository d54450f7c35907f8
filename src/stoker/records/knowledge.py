"""What is written down somewhere and can be searched: rules, Stoker's own pages, and the user's notes."""

from __future__ import annotations

from typing import Literal

from stoker.records.base import Record

# `rule`: checked, with evidence; `page`: Stoker's documentation; `note`: a file of the user's, which nobody checked.
KnowledgeKind = Literal["rule", "page", "note"]


class KnowledgeSettings(Record, frozen=True):
    """The `[knowledge]` table: folders of Markdown that are searched beside the rules."""

    folders: tuple[str, ...] = ()


class Passage(Record, frozen=True):
    """One piece of text with a heading; `source` is a rule's id, a page below docs, or a whole path, `line` its first."""

    kind: KnowledgeKind
    source: str
    title: str
    text: str
    line: int = 1


class Hit(Record, frozen=True):
    """A passage that speaks of what was asked, and the words around it.

    Of a rule: how well it stands, and the rules that say otherwise.
    """

    kind: KnowledgeKind
    source: str
    title: str
    snippet: str
    line: int = 1
    standing: str | None = None
    contradicts: tuple[str, ...] = ()


class Found(Record, frozen=True):
    """What was found, the best first.

    `all_words`: False where nothing has all the words, and what has some of them is shown. `left_off` counts the rest;
    `unread` says which files could not be searched, and why.
    """

    query: str
    hits: tuple[Hit, ...]
    all_words: bool = True
    left_off: int = 0
    unread: tuple[str, ...] = ()
