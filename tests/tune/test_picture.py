"""The picture of a tuning: every band and point is where its figures are, and nothing in it can do harm."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import msgspec
import pytest

from stoker.engines import find
from stoker.records import TuneView, Way
from stoker.tune.choosing import State
from stoker.tune.families import OFF, plan_families
from stoker.tune.guessing import guess_all
from stoker.tune.picture import HEIGHT, TOP, render_page, render_svg
from stoker.tune.reading import lengths_from_mean
from stoker.tune.showing import make_view
from tune_samples import see, steady

SVG = "{http://www.w3.org/2000/svg}"
SIX = Way("mtp", 6)


def made_view(**changes: object) -> TuneView:
    """What is known after two starts: the bands of all between them."""
    families = plan_families(find("vllm"), None, has_draft_layers=True)[:2]
    six = see(SIX, *steady(72.2), lengths=lengths_from_mean(0.56, 6), lengths_by="mean")
    state = State(families, (see(OFF, *steady(35.0)), six))
    return msgspec.structs.replace(make_view("vllm", OFF, state, guess_all(state)), service="coder", **changes)


def drawn(text: str, kind: str) -> list[Xml.Element]:
    return Xml.fromstring(text).findall(f"{SVG}{kind}")  # noqa: S314 - our own


def test_each_way_has_its_name_its_band_and_its_point() -> None:
    picture = render_svg(made_view(chosen=SIX))
    names = [one.text for one in drawn(picture, "text") if str(one.get("class")).startswith("name")]
    assert names == ["off", *(f"mtp {count}" for count in range(1, 7))]
    assert (len(drawn(picture, "rect")), len(drawn(picture, "circle"))) == (5, 2)
    assert [one.text for one in drawn(picture, "text") if one.get("class") == "name chosen"] == ["mtp 6"]


def test_heights_are_as_the_rates() -> None:
    view = made_view()
    most = max(one.predicted.high_tok_s or 0.0 for one in view.ways if one.predicted)
    off, six = (float(str(one.get("cy"))) for one in drawn(render_svg(view), "circle"))
    bottom = TOP + HEIGHT
    assert (bottom - off) / HEIGHT == pytest.approx(35.0 / most, abs=0.002)
    assert (bottom - six) / (bottom - off) == pytest.approx(72.2 / 35.0, rel=0.01)


def test_what_engines_say_is_text_and_the_page_asks_nobody() -> None:
    page = render_page(made_view(why="</p><script>alert(1)</script>", warnings=("<img src=x>",), took_s=1.0))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_nothing_measured_is_drawn_as_nothing() -> None:
    families = plan_families(find("llamacpp"), None, has_draft_layers=False)
    assert drawn(render_svg(make_view("llamacpp", OFF, State(families), {})), "circle") == []
