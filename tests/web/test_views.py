"""The dashboard's own views in a real Chromium, with the real engine: plans, verifications, benchmarks, clients, drafts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, chromium
from dashboard_page import ENTER, is_clean, log_in, reads, sees, visit
from home import Home, wait_for
from page_client import Answer, Browser, send
from stoker.config import demo_model
from stoker.records import State

pytestmark = pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
DRAFTING, PLAIN = 'speculation = "draft"\nreasoning = "off"', 'speculation = "off"\nreasoning = "off"\nparallel = 2'
PHONE, DESK = (390, 844), (1280, 900)
CELL = ("--pp", "32", "--tg", "16", "--runs", "5", "--budget", "10s")


def configure(home: Home, said: str) -> None:
    home.configure(f'[service.demo]\nmodel = "{demo_model()}"\nserved_name = "stoker-demo"\n{said}')


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A Stoker whose demo drafts, was measured twice, and would start by another plan than it runs by."""
    home = Home(tmp_path_factory.mktemp("seen"))
    configure(home, DRAFTING)
    home.run("up", "demo")
    for _ in range(2):
        home.run("bench", "demo", *CELL)
    configure(home, PLAIN)
    yield home
    assert home.end() == {}


@pytest.fixture(scope="module")
def page(seen: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A browser that is logged in there."""
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.resize(*DESK)
        log_in(page, seen)
        yield page


# Plans.


def test_what_a_start_would_change_stands_beside_the_plan(seen: Home, page: Page) -> None:
    visit(page, "#/service/demo/plan")
    change = "[...document.querySelectorAll('[aria-label^=\"What a start\"] tbody tr')].map((row) => row.innerText)"
    rows = sees(page, "what would change", f"{change}.join('\\n') || null")
    assert "parallel\t4\t2\tyou asked for it" in rows
    assert "speculation_type\tdraft-simple\tnot set" in rows
    assert "It was never READY by another plan." in reads(page, ".tab")
    assert "Not predicted" in reads(page, ".tab") or "Limit by the memory" in reads(page, ".tab")
    assert is_clean(page, seen)


def test_a_roll_back_is_shown_without_secrets_and_one_that_rests_is_not_verified(home: Home) -> None:
    configure(home, 'environment = { MY_TOKEN = "first" }')
    home.run("up", "demo")
    former = home.json("status")["services"][0]["plan_id"]
    configure(home, 'environment = { MY_TOKEN = "other" }\nparallel = 2')
    home.run("switch", "demo")
    browser = Browser(home)

    def as_the_table_is_now() -> Answer | None:
        """The plans as soon as the daemon has looked at stoker.toml again."""
        seen = browser.send("GET", "/api/services/demo/plans")
        return seen if seen.json()["next"]["changes"] == [] else None

    told = wait_for("the table as it is now", as_the_table_is_now)
    view = told.json()
    changes = {one["name"]: (one["here"], one["there"]) for one in view["former"]["changes"]}
    assert view["former"]["plan_id"] == former
    assert changes["parallel"] == ("2", "4")
    assert changes["$MY_TOKEN"] == ("***", "another one, which is not shown")
    assert b"first" not in told.body
    assert b'"other"' not in told.body
    browser.send("POST", "/api/services/demo/down")
    home.await_state("demo", State.STOPPED)
    [row] = browser.send("GET", "/api/verifications").json()["rows"]
    assert row["why_not"] == "it is STOPPED"
    assert browser.send("POST", "/api/services/demo/verify", {}).status == 409


def test_a_table_that_cannot_be_planned_says_why(seen: Home) -> None:
    configure(seen, "context = 1000000")
    browser, path = Browser(seen), "/api/services/demo/plans"
    view = wait_for("the table to be read", lambda: ((told := browser.send("GET", path).json())["no_next"] and told) or None)
    assert "context" in view["no_next"]
    assert view["plan"]["service"] == "demo"
    configure(seen, PLAIN)
    wait_for("the former table", lambda: browser.send("GET", path).json()["next"])


# Verifications.


def test_a_verification_is_asked_for_watched_and_opened(seen: Home, page: Page) -> None:
    visit(page, "#/verify")
    sees(page, "the gate's verdicts", "document.querySelectorAll('.matrix .verdict-sign').length > 2")
    page.click("[data-verify=demo]")
    assert "How long?" in reads(page, "dialog")
    page.click("dialog button.main")
    sees(
        page, "that it is under way", "/being verified|demo: /.test(document.querySelector('.progress')?.textContent ?? '')"
    )
    sees(page, "all verdicts", "document.querySelectorAll('.matrix .verdict-sign').length > 10")
    kept = json.loads(seen.run("verify", "--last", "demo", "--json", code=1).stdout)  # the demo fails in something
    told = {probe["name"]: probe["verdict"] for probe in kept["verification"]["probes"]}
    assert kept["occasion"] == "verify"
    label = "[...document.querySelectorAll('.matrix .verdict-sign')].map((one) => one.getAttribute('aria-label'))"
    shown = dict(text.removeprefix("demo, ").split(",")[0].split(": ") for text in page.run(label))
    assert shown == told
    bad = next(name for name, verdict in told.items() if verdict not in ("pass", "not offered"))
    page.click(f".matrix [aria-label^='demo, {bad}:']")
    sees(page, "its evidence", "document.querySelector('.finding details pre') !== null")
    assert "/v1/" in reads(page, ".finding summary")
    assert is_clean(page, seen)


def test_one_verification_runs_at_a_time_and_can_be_stopped(seen: Home) -> None:
    browser, path = Browser(seen), "/api/services/demo/verify"
    assert browser.send("POST", path, {"deep": True}).json()["count"] > 13
    second = browser.send("POST", path, {})
    assert (second.status, second.json()["fault"]["what"]) == (409, "demo is being verified")
    stopped = browser.send("DELETE", "/api/verifications").json()
    assert (stopped["outcome"], stopped["why"]) == ("stopped", "nothing of it is kept")
    assert browser.send("POST", path, {"budget_s": -1.0}).status == 400
    assert browser.send("POST", "/api/services/nobody/verify", {}).status == 400


def test_a_browser_that_looks_on_verifies_nothing(seen: Home) -> None:
    browser = Browser(seen, looks_on=True)
    assert browser.send("GET", "/api/verifications").status == 200
    assert browser.send("POST", "/api/services/demo/verify", {}).status == 403
    assert Browser(seen).send("POST", "/api/services/demo/verify", {}, x_stoker_word="").status == 403


# Benchmarks.


def test_a_run_has_its_table_and_its_charts(seen: Home, page: Page) -> None:
    visit(page, "#/bench")
    sees(page, "the runs", "document.querySelectorAll('[data-run]').length === 2")
    page.click("a[href='#/bench/1']")
    sees(page, "its charts", "document.querySelectorAll('figure[data-chart] canvas').length > 1")
    run = seen.json("bench", "show", "1")["run"]
    [cell] = run["cells"]
    rate = next(one["median"] for one in cell["figures"] if one["name"] == "accept_length")
    assert f"{rate:.2f}" in reads(page, "[aria-label=Cells] tbody")
    inked = "[...document.querySelectorAll('figure canvas')].every((one) => one.getContext('2d')"
    assert page.run(f"{inked}.getImageData(0, 0, one.width, one.height).data.some((value) => value))")
    assert is_clean(page, seen)


def test_two_runs_are_compared_in_the_words_of_the_command(seen: Home, page: Page) -> None:
    visit(page, "#/bench")
    sees(page, "the runs", "document.querySelectorAll('[data-run]').length === 2")
    assert page.run("document.querySelector('.tab button.main, section button.main').disabled")
    for run in (2, 1):
        page.click(f"[data-run='{run}']")
    page.click("section button.main")
    sees(page, "the comparison", "document.querySelectorAll('.change').length > 3")
    said = page.run("[...document.querySelectorAll('.change')].map((one) => one.textContent)")
    text = " ".join(seen.run("bench", "compare", "1", "2").stdout.split())
    assert [one for one in said if " ".join(one.split()) not in text] == []
    assert is_clean(page, seen)


@pytest.mark.parametrize("query", ["a=7&b=1", "a=1&b=--help", "a=published:nothing"])
def test_a_run_that_is_not_there_is_said_to_be_missing(seen: Home, query: str) -> None:
    answer = Browser(seen).send("GET", f"/api/bench/compare?{query}")
    assert (answer.status, answer.json()["fault"]["exit_code"]) == (400, 2)


# Clients.


def test_settings_are_those_of_the_command_and_hold_no_key(seen: Home, page: Page) -> None:
    visit(page, "#/clients")
    sees(page, "the settings", "document.querySelectorAll('[data-client]').length > 10")
    for name in ("opencode", "vibe", "curl"):
        page.click(f"[data-client='{name}']")
        assert page.run("document.querySelector('.settings pre').textContent") == seen.run("clients", "config", name).stdout
    page.click("[data-client='mcp-claude-code']")
    entry = seen.run("clients", "config", "claude-code", "--mcp").stdout
    assert page.run("document.querySelector('.settings pre').textContent") == entry
    page.click("[data-copy]")
    sees(page, "that it was copied", "/Copied|selected/.test(document.getElementById('notices').textContent)")
    whole = Browser(seen).send("GET", "/api/clients").body.decode() + page.run("document.documentElement.outerHTML")
    secrets = (seen.paths.key_file, seen.paths.control_key_file, seen.paths.engine_key_file)
    assert [file.name for file in secrets if file.read_text().strip() in whole] == []
    assert is_clean(page, seen)


def test_which_model_is_asked_for_where_several_are_there(home: Home) -> None:
    home.add_fake("one", 'served_name = "first"')
    home.add_fake("two", 'served_name = "second"')
    home.run("up", "one")
    browser = Browser(home)
    assert browser.send("GET", "/api/clients").json()["model"] in ("first", None)
    told = browser.send("GET", "/api/clients?model=second").json()
    assert told["model"] == "second"
    assert all("second" in one["text"] for one in told["configs"])


# Drafts.


def test_accepted_draft_tokens_are_marked_in_the_answer(seen: Home, page: Page) -> None:
    visit(page, "#/service/demo/try")
    sees(page, "the chat", "document.querySelector('form button.main')?.disabled === false")
    page.click("#question")
    page.type("Tell me about yourself.")
    page.press("Enter", ENTER)
    sees(page, "its figures", "document.querySelector('.measured')?.textContent.includes('accepted (underlined)')")
    accepted = int(reads(page, ".measured").split(" of ")[0].rsplit(" ", 1)[1])
    marked = page.run("document.querySelectorAll('.answer .drafted').length")
    assert 0 < marked <= accepted
    assert marked >= accepted - 4  # an end of the answer is a token without text, and may stand in a draft
    assert len(reads(page, ".answer")) > marked


def test_what_is_marked_is_what_the_counters_say(page: Page) -> None:
    said = json.dumps([{"content": "a"}, {"content": "b"}])
    assert page.run(f"""(async () => {{ const {{ marker }} = await import('/page/drafted.js'); const mark = marker();
        return {said}.map((one) => mark(one.timings)) }})()""") == [False, False]
    steps = [(1, None, None), (2, 3, 2), (3, 3, 2), (4, 3, 2), (5, 6, 2), (7, 9, 4), (8, 9, 4)]
    told = json.dumps([{"predicted_n": n, "draft_n": d, "draft_n_accepted": a} for n, d, a in steps])
    assert page.run(f"""(async () => {{ const {{ marker }} = await import('/page/drafted.js'); const mark = marker();
        return {told}.map(mark) }})()""") == [False, True, True, False, False, True, False]


# Everybody.


def test_nobody_sees_them_without_a_session(seen: Home) -> None:
    for path in ("/api/verifications", "/api/bench/runs", "/api/clients", "/api/services/demo/plans"):
        assert send(seen, "GET", path).status == 401


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_them(seen: Home, page: Page, size: tuple[int, int], scheme: str) -> None:
    page.resize(*size)
    page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    found = find_spec("axe_core_python")
    assert found is not None
    assert found.origin is not None
    page.run(f"{Path(found.origin).with_name('axe.min.js').read_text()};0")
    views = {
        "#/verify": ".matrix .verdict-sign", "#/bench": "[data-run]", "#/bench/1": "figure canvas", "#/bench/1/2": ".change",
        "#/clients": ".settings pre", "#/service/demo/plan": ".tab table",
    }  # fmt: skip
    for view, sign in views.items():
        visit(page, view)
        sees(page, view, f"document.querySelector({json.dumps(sign)}) !== null")
        told = page.run("axe.run(document, { resultTypes: ['violations'] })")
        assert len(told["passes"]) > 10, view  # it was really looked at
        wrong = [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in told["violations"]]
        assert wrong == [], view
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"
    page.resize(*DESK)
