"""`docs/answers.md`: every flag, quirk and crash that five published reports name, and the rule or code that answers it."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

from stoker.rules.load import load_rules

DATA = Path(__file__).parent.parent.parent / "docs" / "answers.toml"
NOTE = "<!-- Written by tools/make_docs.py from docs/answers.toml. -->"


def pages() -> dict[str, str]:
    """Returns the page; raises SystemExit where an answer does not exist."""
    tree = tomllib.loads(DATA.read_text(encoding="utf-8"))
    rules = {rule.id for rule in load_rules()}
    lines = ["# What is answered", "", NOTE, "", tree["about"].strip(), ""]
    for report in tree["report"]:
        lines += [f"## {report['title']}", "", f"Source: {report['source']}", "", "| what it says | kind | answered by |"]
        lines += ["| --- | --- | --- |", *(_row(item, rules) for item in report["item"]), ""]
    return {"answers.md": "\n".join(lines)}


def _row(item: dict[str, object], rules: set[str]) -> str:
    answers = item["by"]
    if not isinstance(answers, list) or not answers:
        raise SystemExit(f"docs/answers.toml: nothing answers {item['what']!r}")
    return f"| {item['what']} | {item['kind']} | {', '.join(_answer(str(answer), rules) for answer in answers)} |"


def _answer(answer: str, rules: set[str]) -> str:
    """A rule by its id, a verb as `stoker VERB`, a module as `stoker.room.name`, or why there is neither."""
    if answer in rules:
        return f"[{answer}](rules/{answer}.md)"
    if answer.startswith("stoker."):
        if importlib.util.find_spec(answer) is None:
            raise SystemExit(f"docs/answers.toml: there is no module {answer}")
        return f"`{answer}`"
    if answer.startswith(("stoker ", "later:", "not ours:")):
        return f"`{answer}`" if answer.startswith("stoker ") else answer
    raise SystemExit(f"docs/answers.toml: there is no rule {answer}")
