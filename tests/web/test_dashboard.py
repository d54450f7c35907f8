"""The dashboard in a real Chromium, with the real engine: what a person sees, presses and hears."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, chromium
from dashboard_page import BACKSPACE, ENTER, TAB, await_state, is_clean, log_in, reads, sees, visit
from home import Home
from page_client import Browser
from stoker.records import GIB, State
from stoker.records.watching import Alert, WatchPoint
from stoker.store.watch import MACHINE, Batch, write_batch

pytestmark = pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
EVIL = "</p><script>document.title='run'</script><img src=x onerror=\"document.title='run'\"><b>&amp;"
WATCH = """window.seen = new Set();
    new MutationObserver(() => seen.add(document.querySelector('article.service')?.dataset.state))
        .observe(document.getElementById('main'), { subtree: true, attributes: true, childList: true })"""
HAS_PACE = "/\\d/.test(document.querySelector('[data-state=READY] .figures dd')?.textContent ?? '')"
PHONE, DESK = (390, 844), (1280, 900)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.resize(*DESK)
        yield page


def test_from_the_first_visit_to_a_chat_and_back(home: Home, page: Page) -> None:
    home.run("up")  # a daemon; what it serves is taken out, so that nothing was ever configured
    home.run("down", "demo", "--forget")
    log_in(page, home)
    sees(
        page,
        "the machine's facts",
        "document.querySelector('.first dl') !== null && !document.querySelector('.first').hidden",
    )
    assert "NOT STARTED" in reads(page, ".state")
    page.run(WATCH)
    page.click("[data-deed=start]")
    await_state(page, "READY")
    assert {"LOADING", "PROVING"} & set(page.run("[...seen]"))
    assert page.run("document.querySelector('.first').hidden")
    sees(page, "the demo in the bar", "document.querySelector('.legend').textContent.includes('demo')")
    assert "it is up" in page.run("document.querySelector('[data-deed=start]').title")

    visit(page, "#/service/demo/try")
    sees(page, "the chat", "document.querySelector('form button.main')?.disabled === false")
    page.click("#question")
    page.type("Who are you?")
    page.press("Enter", ENTER)
    sees(page, "its figures", "document.querySelector('.measured')?.textContent.includes('TTFT')")
    assert len(reads(page, ".answer")) > 3
    assert "stoker-demo" in reads(page, "details pre")
    sees(page, "the pace of it", HAS_PACE)

    visit(page, "#/")
    page.click("[data-deed=stop]")
    page.press("Enter", ENTER)  # the question whether it is meant has its first button chosen
    await_state(page, "STOPPED")
    assert home.service("demo").state is State.STOPPED
    assert is_clean(page, home)


def test_an_engine_that_is_killed_is_seen_and_why(home: Home, page: Page) -> None:
    home.configure(limits="restarts = 0")
    home.run("up")
    log_in(page, home)
    await_state(page, "READY")
    os.kill(home.service("demo").pid or 0, signal.SIGKILL)
    await_state(page, "FAILED")
    assert "SIGKILL" in reads(page, ".why") or "signal 9" in reads(page, ".why"), reads(page, ".why")
    visit(page, "#/service/demo/findings")
    sees(page, "the findings", "/lines, \\d+ starts/.test(document.querySelector('.tab')?.textContent ?? '')")
    visit(page, "#/service/demo/logs")
    sees(page, "the log", "document.querySelector('.log')?.textContent.length > 100")
    visit(page, "#/service/demo/plan")
    sees(page, "the plan", "document.querySelectorAll('.tab tbody tr').length > 3")
    visit(page, "#/service/demo/timeline")
    sees(page, "the timeline", "document.querySelectorAll('.tab .span').length > 1")
    assert is_clean(page, home)


def test_what_models_and_logs_say_is_text(home: Home, page: Page) -> None:
    said = {"model": EVIL, "choices": [{"index": 0, "delta": {"content": EVIL}, "finish_reason": "stop"}]}
    home.add_fake("odd", f"served_name = {json.dumps(EVIL)}", prints=EVIL, event=said)
    home.run("up", "odd")
    log_in(page, home)
    await_state(page, "READY")
    assert EVIL in reads(page, ".what")
    visit(page, "#/service/odd/logs")
    sees(page, "the log", f"document.querySelector('.log')?.textContent.includes({json.dumps(EVIL)})")
    visit(page, "#/service/odd/try")
    sees(page, "the chat", "document.querySelector('form button.main')?.disabled === false")
    page.click("#question")
    page.type(EVIL)
    page.press("Enter", ENTER)
    sees(page, "the answer", f"document.querySelector('.answer')?.textContent.startsWith({json.dumps(EVIL)})")
    assert page.run("document.querySelectorAll('main script, main img, main b').length") == 0
    assert is_clean(page, home)


def barriers(page: Page) -> list[tuple[str, list[str]]]:
    """Returns what axe has against the page as it stands."""
    found = find_spec("axe_core_python")
    assert found is not None
    assert found.origin is not None
    page.run(f"{Path(found.origin).with_name('axe.min.js').read_text()};0")
    told = page.run("axe.run(document, { resultTypes: ['violations'] })")
    assert len(told["passes"]) > 10  # it was really looked at
    return [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in told["violations"]]


def test_a_log_is_searched_as_it_is_typed(home: Home, page: Page) -> None:
    home.add_fake("odd", prints=EVIL)
    home.run("up", "odd")
    log_in(page, home)
    visit(page, "#/service/odd/logs")
    sees(page, "the log", "document.querySelector('.log')?.textContent.includes('<script>')")
    page.click("#search")
    page.type("ONERROR=")  # letters of either case mean the same
    sees(page, "what is found", "document.querySelector('.tab [role=status]').textContent.startsWith('1 in ')")
    assert reads(page, ".log").endswith(EVIL)
    assert "\n" not in reads(page, ".log")
    page.type("nowhere")
    sees(page, "that there is none", "document.querySelector('.tab [role=status]').textContent.startsWith('0 in ')")
    assert reads(page, ".log") == ""
    assert barriers(page) == []  # a name on what has no role is one where nothing stands in it
    page.run("document.querySelector('#search').select()")
    page.press("Backspace", BACKSPACE)
    sees(
        page, "that it is followed again", "document.querySelector('.tab [role=status]').textContent.startsWith('the last ')"
    )
    assert EVIL in reads(page, ".log")
    assert is_clean(page, home)


def test_a_daemon_that_comes_back_is_shown_as_it_is_then(home: Home, page: Page) -> None:
    home.run("up")
    log_in(page, home)
    await_state(page, "READY")
    port = home.daemon.url.rpartition(":")[2]
    home.kill_daemon()
    sees(page, "that it is lost", "!document.getElementById('stale').hidden")
    assert "what is shown is what was so then" in reads(page, "#stale")
    home.configure(gateway=f"port = {port}")
    home.run("up")  # the next one takes the engine back, at the same address
    sees(page, "that it is heard again", "document.getElementById('stale').hidden")
    await_state(page, "READY")
    home.run("down", "demo", "--forget")
    sees(page, "that nothing is left of it", "document.querySelector('.first')?.hidden === false")


def test_the_past_is_drawn_with_what_happened(home: Home, page: Page) -> None:
    home.run("up")
    now = int(time.time()) // 60 * 60
    service = WatchPoint(
        60.0, 600, 60, 300, 200, 100, 2, 1, 9, 0,
        streams=4, ttft_total_s=0.4, ttft_most_s=0.2, counted_streams=4, token_total_s=0.1,
    )  # fmt: skip
    machine = WatchPoint(60.0, available_least_bytes=8 * GIB)
    minutes = [now - 60 * back for back in range(1, 30)]
    points = {("demo", at): service for at in minutes} | {(MACHINE, at): machine for at in minutes}
    firing = Alert("queue-long", "demo", "warning", "demo queues", "because", "do", "firing", now - 600.0, now - 500.0)
    write_batch(home.paths.watch_database, Batch(points, [firing]))
    log_in(page, home)
    visit(page, "#/service/demo/charts")
    drawn = "[...document.querySelectorAll('figure[data-chart]')].map((one) => one.dataset.chart)"
    sees(page, "the charts", f"{drawn}.length > 0")
    assert page.run(drawn) == ["rate", "accept-rate", "accept-length", "ttft", "token", "requests", "memory"]
    label = "document.querySelector('[data-chart=accept-length]').getAttribute('aria-label')"
    assert page.run(label) == "Accept length: last 3.0, lowest 3.0, highest 3.0 tokens a verify step"
    inked = "[...document.querySelectorAll('figure canvas')].every((one) => one.getContext('2d')"
    assert page.run(f"{inked}.getImageData(0, 0, one.width, one.height).data.some((value) => value))")
    assert "demo queues: because" in reads(page, ".events")
    assert "a start" in reads(page, ".events")
    assert is_clean(page, home)


def test_two_who_press_at_once_do_no_harm(home: Home) -> None:
    home.run("up")
    one, other = Browser(home), Browser(home)
    launch = home.service("demo").pid
    seen = sorted(browser.send("POST", "/api/services/demo/restart").status for browser in (one, other))
    assert seen == [200, 409]
    home.await_state("demo", State.READY)
    assert home.service("demo").pid != launch
    assert [browser.send("POST", "/api/services/demo/start").status for browser in (one, other)] == [200, 200]
    assert home.service("demo").state is State.READY
    assert len(home.engines()) == 1


@pytest.mark.parametrize("size", [PHONE, DESK])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(demo: Home, page: Page, size: tuple[int, int], scheme: str) -> None:
    page.resize(*size)
    log_in(page, demo, scheme=scheme)
    await_state(page, "READY")
    for view in ("#/", "#/service/demo/charts", "#/service/demo/plan", "#/service/demo/try", "#/service/demo/logs"):
        visit(page, view)
        sees(page, view, "document.querySelector('main').textContent.length > 100")
        assert barriers(page) == [], view
        assert page.run("document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the screen"
    assert is_clean(page, demo)
    page.resize(*DESK)


def test_the_keyboard_alone_is_enough(demo: Home, page: Page) -> None:
    log_in(page, demo)
    page.run("document.body.focus()")
    names = []
    for _ in range(20):
        page.press("Tab", TAB)
        names.append(page.run("document.activeElement.textContent.trim()"))
    assert {"Skip to the services", "Log out", "demo", "Start", "Stop", "Restart"} <= set(names)
    page.click("#logout")
    sees(page, "the login", "document.activeElement?.id === 'key'")
