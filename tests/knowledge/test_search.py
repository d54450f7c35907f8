"""The search over rules, pages and notes: what is found first, and that no file can hurt it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from home import Home
from stoker.config import Paths
from stoker.errors import WrongUse
from stoker.flows.knowledge import search_knowledge
from stoker.flows.knowledge_files import FILE_BYTES, PASSAGE_LETTERS, decode, split_markdown
from stoker.store.knowledge import KnowledgeIndex, question_of


def paths_with(folder: Path, *notes: Path) -> Paths:
    """Returns paths whose stoker.toml names folders of notes."""
    folders = ", ".join(f'"{one}"' for one in notes)
    (folder / "stoker.toml").write_text(f"[knowledge]\nfolders = [{folders}]\n")
    return Paths(state=folder / "state", config=folder / "stoker.toml")


def test_a_rule_is_found_by_its_sign_with_its_standing_and_who_says_otherwise(tmp_path: Path) -> None:
    found = search_knowledge(paths_with(tmp_path), "invalid device function flashinfer")
    first = found.hits[0]
    assert (first.kind, first.standing) == ("rule", "measured")
    assert "sglang-attn-flashinfer-works" in first.contradicts
    assert found.all_words


def test_a_page_of_the_documentation_is_found_with_its_line(tmp_path: Path) -> None:
    found = search_knowledge(paths_with(tmp_path), "idle_s default_service comes back")
    page = next(one for one in found.hits if one.kind == "page")
    root = Path(__file__).parents[2]
    assert page.title in (root / page.source).read_text().splitlines()[page.line - 1]


def test_a_rule_is_found_by_its_name_and_by_a_stem(tmp_path: Path) -> None:
    assert search_knowledge(paths_with(tmp_path), "budget-unified-share").hits[0].source == "budget-unified-share"
    crash, crashes = (search_knowledge(paths_with(tmp_path), f"flashinfer {word}") for word in ("crash", "crashes"))
    assert [one.source for one in crash.hits] == [one.source for one in crashes.hits]


def test_where_nothing_has_all_words_some_of_them_do_and_that_is_said(tmp_path: Path) -> None:
    found = search_knowledge(paths_with(tmp_path), "flashinfer zorblaxification")
    assert found.hits
    assert not found.all_words
    nothing = search_knowledge(paths_with(tmp_path), "zorblaxification")
    assert (nothing.hits, nothing.all_words, nothing.left_off) == ((), True, 0)


def test_notes_are_found_below_their_heading_and_what_was_left_off_is_counted(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "deep" / "er").mkdir(parents=True)
    for number in range(5):
        (notes / "deep" / "er" / f"{number}.MD").write_text(f"# Title\n\ntext\n\n## Rattling {number}\n\nthe zorblax fan\n")
    found = search_knowledge(paths_with(tmp_path, notes), "zorblax", 2)
    assert [(one.kind, one.title, one.line) for one in found.hits] == [("note", "Rattling 0", 5), ("note", "Rattling 1", 5)]
    assert found.left_off == 3


def test_no_file_can_hurt_the_search_and_those_left_out_are_named(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / ".git").mkdir(parents=True)
    (notes / ".git" / "hidden.md").write_text("zorblax in hiding")
    (notes / "latin.md").write_bytes("# Lüfter\nder zorblax läuft heiß".encode("latin-1"))
    (notes / "wide.md").write_bytes("# Wide\nzorblax wide".encode("utf-16"))
    (notes / "marked.md").write_bytes(b"\xef\xbb\xbf# Marked\nzorblax marked")
    (notes / "junk.md").write_bytes(bytes(range(256)) * 100)
    (notes / "huge.md").write_bytes(b"# Huge\nzorblax at first\n" + b"x" * (FILE_BYTES + 10))
    (notes / "fence.md").write_text("```sh\n# zorblax is no heading here\n```\n" + "#" * 500 + "\n" + "[" * 9000)
    (notes / "gone.md").symlink_to(notes / "nowhere.md")
    (notes / "circle").symlink_to(notes)
    os.mkfifo(notes / "pipe.md")
    (notes / "picture.png").write_text("zorblax")
    found = search_knowledge(paths_with(tmp_path, notes, tmp_path / "absent"), "zorblax", 20)
    assert sorted(Path(one.source).name for one in found.hits) == [
        "fence.md", "huge.md", "latin.md", "marked.md", "wide.md",
    ]  # fmt: skip
    assert {one.title for one in found.hits} >= {"Lüfter", "Wide", "Marked"}
    unread = "\n".join(found.unread)
    for name in ("gone.md", "pipe.md", "huge.md", "absent: there is no such folder"):
        assert name in unread


@pytest.mark.parametrize("query", ["", "   ", "--", '"', "\0", "* ( )"])
def test_a_query_without_a_word_is_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(WrongUse, match="no word to search for"):
        search_knowledge(paths_with(tmp_path), query)


@given(st.text(max_size=60), st.booleans())
def test_no_query_is_taken_for_the_indexs_own_language(query: str, every: bool) -> None:
    index = KnowledgeIndex([("a title", "some text")])
    question = question_of(query, every=every)
    if question is not None:
        index.ask(question, 3)
    index.close()


@given(st.binary(max_size=300))
def test_any_bytes_become_text(held: bytes) -> None:
    assert isinstance(decode(held), str)


@given(st.text(alphabet="#`~ ab\n", max_size=200))
def test_markdown_is_split_without_losing_a_line(text: str) -> None:
    passages = list(split_markdown(text, "note", "x.md"))
    lines = [line for one in passages for line in one.text.splitlines() if line.strip()]
    assert [line.strip() for line in lines] == [line.strip() for line in text.splitlines() if line.strip()]
    assert all(one.line >= 1 for one in passages)


def test_a_long_passage_comes_in_pieces_with_its_title() -> None:
    text = "# Long\n" + "words and words\n" * (PASSAGE_LETTERS // 5)
    passages = list(split_markdown(text, "note", "x.md"))
    assert len(passages) > 2
    assert {one.title for one in passages} == {"Long"}
    assert max(len(one.text) for one in passages) < PASSAGE_LETTERS * 2


def test_the_command_line_shows_sources_and_what_others_say(home: Home) -> None:
    printed = home.run("rules", "--search", "flashinfer invalid device function").stdout
    assert "sglang-attn-flashinfer-invalid-device-function" in printed
    assert "others say otherwise: stoker rules sglang-attn-flashinfer-works" in printed
    found = home.json("rules", "--search", "flashinfer invalid device function")
    assert found["hits"][0]["kind"] == "rule"
    assert "speaks of that" in home.run("rules", "--search", "zorblaxification").stdout
    assert "no word to search for" in home.run("rules", "--search", "--", code=2).stderr
    assert "--search goes with neither" in home.run("rules", "--search", "x", "--engine", "vllm", code=2).stderr


def test_a_folder_of_notes_in_the_configuration_begins_where_that_lies(home: Home) -> None:
    (home.folder / "notes").mkdir()
    (home.folder / "notes" / "mine.md").write_text("# Mine\n\nzorblax \x1b[31mred\n")
    home.configure('[knowledge]\nfolders = ["notes"]')
    printed = home.run("rules", "--search", "zorblax").stdout
    assert f"{home.folder}/notes/mine.md:1" in printed
    assert "\x1b[31m" not in printed
    home.configure("[knowledge]\nfolders = 7")
    assert "`knowledge.folders`" in home.run("rules", "--search", "zorblax", code=2).stderr
