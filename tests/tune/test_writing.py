"""What `stoker tune` writes into stoker.toml, and what it leaves as it is."""

from __future__ import annotations

import tomllib

import pytest

from stoker.errors import Refused
from stoker.plan.wishes import DRAFTING
from stoker.records import Way
from stoker.tune.writing import keys_of, write_way

FILE = """\
# My box.
[gateway]
port = 8701  # as ever

[service.coder]   # the one for work
model = "/models/coder.gguf"
# speculation was measured in May
speculation = "off"  # for now
gate = ["answers",
  "identity"]

# and the next one
[service.prose]
model = "/models/prose.gguf"
draft = "/models/small.gguf"
draft_tokens = 3
"""
KEYS = ("speculation", "draft", *DRAFTING)
EVIDENCE = ("2026-11-22: draft 4 143.0", "before: off")


def written(text: str, service: str, way: Way, draft: str | None = None) -> str:
    return write_way(text, service, KEYS, keys_of(way, draft), EVIDENCE)


def test_a_value_is_replaced_where_it_stands_and_everything_else_stays() -> None:
    new = written(FILE, "coder", Way("ngram", 5))
    assert new == FILE.replace(
        'speculation = "off"  # for now\n',
        '# tune: 2026-11-22: draft 4 143.0\n# tune: before: off\ndraft_tokens = 5\nspeculation = "ngram"  # for now\n',
    )


def test_keys_that_were_not_there_follow_the_tables_last_line() -> None:
    new = written(FILE, "prose", Way("draft", 4), "/models/small.gguf")
    table = tomllib.loads(new)["service"]["prose"]
    assert table == {"model": "/models/prose.gguf", "draft": "/models/small.gguf", "draft_tokens": 4, "speculation": "draft"}


def test_a_draft_that_is_not_used_any_more_stays_as_a_comment() -> None:
    new = written(FILE, "prose", Way("off"))
    assert '\n# draft = "/models/small.gguf"\n# draft_tokens = 3\n' in new
    assert tomllib.loads(new)["service"]["prose"] == {"model": "/models/prose.gguf", "speculation": "off"}


def test_the_evidence_of_the_last_time_goes() -> None:
    twice = written(written(FILE, "coder", Way("ngram", 5)), "coder", Way("ngram", 6))
    assert twice == written(FILE, "coder", Way("ngram", 6)).replace("draft_tokens = 6\n", "", 1).replace(
        "# tune: before: off\n", "# tune: before: off\ndraft_tokens = 6\n"
    )


def test_windows_line_ends_stay() -> None:
    new = written(FILE.replace("\n", "\r\n"), "coder", Way("ngram"))
    assert new.count("\n") == new.count("\r\n")


def test_a_file_without_a_last_line_end_is_written_too() -> None:
    new = written('[service.x]\nmodel = "m.gguf"', "x", Way("ngram"))
    assert tomllib.loads(new)["service"]["x"] == {"model": "m.gguf", "speculation": "ngram"}


@pytest.mark.parametrize(
    "text",
    [
        'service.x.model = "m.gguf"\n',
        'service = { x = { model = "m.gguf" } }\n',
        '[service]\nx.model = "m.gguf"\n',
        '[service.x]\nmodel = "m.gguf"\nspeculation = """off"""\n',
        '[service.x]\nmodel = "m.gguf"\n[service.x.flags]\na = 1\n[other]\nb = """\n[service.x]\n"""\n',
    ],
    ids=["dotted", "inline", "half dotted", "long string", "a string like a header"],
)
def test_a_table_in_another_form_is_refused_or_written_right(text: str) -> None:
    try:
        new = written(text, "x", Way("ngram"))
    except Refused as problem:
        assert "[service.x]" in problem.next_step
    else:
        assert tomllib.loads(new)["service"]["x"]["speculation"] == "ngram"


def test_a_path_with_signs_that_toml_escapes_is_written_as_it_is() -> None:
    path = 'C:\\models\\"odd".gguf'
    new = write_way('[service.x]\nmodel = "m.gguf"\n', "x", KEYS, keys_of(Way("draft", 2), path), ("",))
    assert tomllib.loads(new)["service"]["x"]["draft"] == path
