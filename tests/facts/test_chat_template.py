"""What a chat template can do, from the names that its code uses."""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.facts.model.template import read_template, template_features

HERMES = """
{%- if tools %}{{- '<|im_start|>system\\n# Tools' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}{%- endif %}
{%- for message in messages %}{%- if message.role == "system" %}{{- message.content }}{%- endif %}{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"""


@pytest.mark.parametrize(
    ("template", "features"),
    [
        ("{% for m in messages %}{{ m.content }}{% endfor %}", ()),
        (HERMES, ("system", "tools", "thinking", "switch:enable_thinking")),
        ("{# tools and enable_thinking #}Use tools with enable_thinking {{ x.tools }}{{ 'tools' }}", ()),
        ("{% if not thinking is defined %}{% set thinking = false %}{% endif %}", ("thinking", "switch:thinking")),
        ("{% set thinking = thinking | default(false) %}", ("thinking", "switch:thinking")),
        ("{% set thinking = message.content %}{{ thinking }}", ()),
        ("{{ reasoning_effort }}", ("thinking", "switch:reasoning_effort")),
        ("{{ message['reasoning_content'] }}", ("thinking",)),
        ("{% if part.type == 'image_url' %}{{ '<image>' }}{% endif %}", ("images",)),
        ("{{ raise_exception('Conversation roles must alternate user/assistant') }}", ("alternation",)),
        ("{{ raise_exception('no such role') }}", ()),
        ("{{ 'it\\'s tools' }}{{ tools", ("tools",)),
        ('{{ "a \'quoted\' \\" one" }}{% if tools %}', ("tools",)),
        ("{{ 'never closed tools", ()),
        ("{% for tools", ("tools",)),
        ("", ()),
        (None, ()),
    ],
)
def test_features_are_read_from_the_names_of_the_code(template: str | None, features: tuple[str, ...]) -> None:
    assert template_features(template) == features


@pytest.mark.parametrize(
    "hostile",
    ["{%" * 10**5, "{{'" * 10**5, "{{ '" + "\\'" * 10**5, "{% " + "a." * 10**5, "{% set x " * 10**5, "{% set x %}" * 10**5,
     "{# " * 10**5, "{% set " + "thinking " * 10**5],
    ids=range(8),
)  # fmt: skip
def test_no_template_takes_longer_than_its_length(hostile: str) -> None:
    began_s = process_time()
    template_features(hostile)
    assert process_time() - began_s < 5  # they take 0.1 s; what grows with the square of the length takes minutes


@given(st.text(alphabet="{}%#'\"\\ .a=set\n"))
def test_no_template_ends_in_a_traceback(template: str) -> None:
    assert isinstance(template_features(template), tuple)


def test_a_template_is_found_wherever_it_is_kept(tmp_path: Path) -> None:
    problems: list[str] = []
    assert read_template(tmp_path, {}, problems) is None
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "in a file of its own"}))
    assert read_template(tmp_path, {}, problems) == "in a file of its own"
    named = [{"name": "tool_use", "template": "for tools"}, {"name": "default", "template": "for all"}]
    assert read_template(tmp_path, {"chat_template": named}, problems) == "for all"
    assert read_template(tmp_path, {"chat_template": named[:1]}, problems) == "for tools"
    assert read_template(tmp_path, {"chat_template": "one"}, problems) == "one"
    (tmp_path / "chat_template.jinja").write_text("the newest way")
    assert read_template(tmp_path, {"chat_template": "one"}, problems) == "the newest way"
    assert problems == []


@pytest.mark.parametrize("stored", [3, [], [3], [{"name": "default"}], {"default": "x"}, None])
def test_a_template_of_another_type_is_none(tmp_path: Path, stored: object) -> None:
    assert read_template(tmp_path, {"chat_template": stored}, []) is None
