"""Drafts by content with the real llama.cpp: counted apart where requests say theirs, and not where they run together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser

from home import Home, wait_for
from stoker.config import demo_model

DRAFT = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf")
TABLE = f"""
[watch]
every_s = 1.0
[service.coder]
model = "{demo_model()}"
speculation = "draft"
draft = "{DRAFT}"
gate = []
reasoning = "off"
"""
PROMPTS = {"code": "Write a function that adds two numbers.", "prose": "Who are you?"}
ENOUGH = 300
QUIET_LOOKS = 4


def ask(home: Home, prompt: str, content: str | None) -> None:
    """Asks once, to the answer's end."""
    headers = {"authorization": f"Bearer {home.daemon.key}"} | ({} if content is None else {"x-stoker-content": content})
    body = {"model": "coder", "max_tokens": 64, "messages": [{"role": "user", "content": prompt}]}
    url = f"{home.daemon.url}/v1/chat/completions"
    assert httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60).status_code == httpx.codes.OK


def drafted(home: Home, name: str) -> dict[str, int]:
    """What a counter of drafts says, by content; the engine's own knows none."""
    headers = {"authorization": f"Bearer {home.daemon.key}", "accept": "application/openmetrics-text; version=1.0.0"}
    page = httpx.get(f"{home.daemon.url}/metrics", headers=headers, trust_env=False, timeout=20).text
    families: Iterator[Metric] = parser.text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
    found = (sample for family in families for sample in family.samples if sample.name == name)
    return {one.labels.get("content", ""): int(one.value) for one in found if one.labels["service"] == "coder"}


def of_engine(home: Home) -> int:
    return drafted(home, "stoker_engine_draft_tokens_total")[""]


def of_contents(home: Home) -> dict[str, int]:
    return drafted(home, "stoker_content_draft_tokens_total")


def fall_quiet(home: Home) -> None:
    """Returns once the daemon has looked some times with nothing running."""
    seen: set[float] = set()

    def looked() -> bool:
        view = home.daemon.watch()
        if any(one.running is not None for one in view.services):  # before the first look, its time is that of asking
            seen.add(view.at)
        return len(seen) > QUIET_LOOKS

    wait_for("some looks", looked)


def work(home: Home, asking: Callable[[], None]) -> int:
    """Asks again and again until the engine has drafted enough and some looks were taken; returns by how much that grew."""
    begun, looks = of_engine(home), set[float]()
    while of_engine(home) - begun < ENOUGH or len(looks) <= QUIET_LOOKS:
        asking()
        looks.add(home.daemon.watch().at)
    fall_quiet(home)
    return of_engine(home) - begun


@pytest.fixture
def coder(home: Home) -> Home:
    home.configure(TABLE, gateway='port = 0\ncontents = ["code", "prose"]')
    home.run("up", "coder")
    ask(home, PROMPTS["prose"], None)  # llama.cpp shows what it counts of drafts once it has drafted, and not before
    fall_quiet(home)
    return home


def test_drafts_are_counted_by_content_where_one_ran_alone(coder: Home) -> None:
    assert of_contents(coder) == {}
    grew = {content: work(coder, partial(ask, coder, prompt, content)) for content, prompt in PROMPTS.items()}
    assert of_contents(coder) == grew  # to the token: what the engine counted meanwhile
    [seen] = coder.daemon.watch().services
    assert [(one.content, one.draft_tokens) for one in seen.contents] == sorted(grew.items())
    assert all(0 < one.accept_rate <= 1 and (one.accept_length or 0) > 1 for one in seen.contents)
    said = coder.run("watch", "--once").stdout
    assert f"drafts of coder by content: code {seen.contents[0].accept_rate:.2f} (accept length " in said

    # What says nothing, or a word that the owner did not name, is nobody's, and makes no series.
    assert work(coder, partial(ask, coder, PROMPTS["code"], None)) >= ENOUGH
    assert work(coder, partial(ask, coder, PROMPTS["code"], "poetry")) >= ENOUGH
    assert of_contents(coder) == grew

    with ThreadPoolExecutor(2) as people:

        def both() -> None:
            for done in [people.submit(ask, coder, prompt, content) for content, prompt in PROMPTS.items()]:
                done.result()

        together = work(coder, both)
    # Nobody knows whose those were, but for moments in which one was there and the other not yet.
    assert sum(of_contents(coder).values()) - sum(grew.values()) < together / 4
