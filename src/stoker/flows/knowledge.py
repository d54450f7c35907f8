"""Searches what is known: the rules, Stoker's own pages, and the user's notes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec

from stoker.config import Paths, read_config
from stoker.errors import WrongUse
from stoker.flows.knowledge_files import Notes, page_passages, rule_passages
from stoker.records import Found, Hit, Passage
from stoker.rules.load import load_rules
from stoker.rules.match import standing_of
from stoker.store.knowledge import KnowledgeIndex, question_of

MOST_HITS = 12


def search_knowledge(paths: Paths, query: str, most: int = MOST_HITS) -> Found:
    """Returns the passages that have all the words, or any of them where none has all; raises WrongUse without a word."""
    questions = [question_of(query, every=every) for every in (True, False)]
    if questions[0] is None or questions[1] is None:
        raise WrongUse("there is no word to search for", next_step="`stoker rules --search 'invalid device function'`")
    notes = Notes(read_config(paths.config).knowledge.folders)
    passages = [*rule_passages(), *page_passages(), *notes.passages()]
    with closing(KnowledgeIndex((one.title, one.text) for one in passages)) as index:
        places, count = index.ask(questions[0], most)
        all_words = bool(places)
        if not places:
            places, count = index.ask(questions[1], most)
    hits = _with_standing([_hit(passages[place], snippet) for place, snippet in places])
    return Found(query, hits, all_words or not hits, count - len(hits), tuple(notes.unread))


def _hit(passage: Passage, snippet: str) -> Hit:
    return Hit(passage.kind, passage.source, passage.title, " ".join(snippet.split()), passage.line)


def _with_standing(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    rules = {rule.id: rule for rule in load_rules()}
    told = []
    for hit in hits:
        rule = rules.get(hit.source) if hit.kind == "rule" else None
        more = {"standing": standing_of(rule), "contradicts": rule.contradicts} if rule else {}
        told.append(msgspec.structs.replace(hit, **more))
    return tuple(told)
