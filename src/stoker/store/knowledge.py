"""A search over passages: an index of SQLite's FTS5 in memory, made anew for each question, so that none is ever stale."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from stoker.errors import StokerError

# Stemmed, so that `crashes` finds `crash`. A word in a heading says more than one in the text.
TABLE = """
CREATE VIRTUAL TABLE passages USING fts5
    (title, text, place UNINDEXED, tokenize = "porter unicode61 remove_diacritics 2")
"""
ASK = """
SELECT place, snippet(passages, 1, '', '', ' … ', 28) FROM passages
    WHERE passages MATCH ? ORDER BY bm25(passages, 6.0, 1.0), place LIMIT ?
"""
COUNT = "SELECT count(*) FROM passages WHERE passages MATCH ?"
MOST_WORDS = 24


class KnowledgeIndex:
    """An index of titles and texts, which answers with their places in the order in which they were given."""

    def __init__(self, passages: Iterable[tuple[str, str]]) -> None:
        try:
            self._database = sqlite3.connect(":memory:", isolation_level=None)
            self._database.execute(TABLE)
        except sqlite3.Error as problem:
            raise StokerError(
                "this Python's SQLite cannot search text", why=str(problem),
                next_step="use the Python of your distribution; its SQLite has FTS5",
            ) from problem  # fmt: skip
        rows = ((title, text, place) for place, (title, text) in enumerate(passages))
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO passages VALUES (?, ?, ?)", rows)
        self._database.execute("COMMIT")

    def ask(self, question: str, most: int) -> tuple[list[tuple[int, str]], int]:
        """Returns the places of the best passages with the words around what was found, and how many there are in all."""
        places = self._database.execute(ASK, (question, most)).fetchall()
        return places, int(self._database.execute(COUNT, (question,)).fetchone()[0])

    def close(self) -> None:
        """Lets go of the memory."""
        self._database.close()


def question_of(query: str, *, every: bool) -> str | None:
    """Returns the query in FTS5's language, with every word or with any of them; None where no word is in it.

    Each word is quoted, so that nothing of it is taken for FTS5's language: `--attention-backend` is two words in a row.
    """
    words = [word.replace('"', '""') for word in query.replace("\0", " ").split() if any(map(str.isalnum, word))]
    return (" AND " if every else " OR ").join(f'"{word}"' for word in words[:MOST_WORDS]) or None
