"""What happens while the dashboard is open, in a real Chromium with real engines: switches, alerts, a new key."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, chromium
from dashboard_page import ENTER, await_state, is_clean, log_in, reads, sees, visit
from home import Home, wait_for
from stoker.config import demo_model
from stoker.records import GIB, MIB, State

pytestmark = pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
TABLE = '[service.{name}]\nmodel = "{model}"\ngroup = "{group}"\ngate = []\nreasoning = "off"\n'
WATCH = "[watch]\nevery_s = 1.0\n"
RESOLVED_S = 120.0


def of(service: str, what: str = "") -> str:
    return f'article[aria-label="{service}"] {what}'.strip()


@contextmanager
def held_by_nobody(folder: Path, count_bytes: int) -> Iterator[bool]:
    """Holds memory that no process seems to have, as a driver does when an engine ended; False where that is refused."""
    with (folder / "held").open("w+b") as file:
        os.posix_fallocate(file.fileno(), 0, count_bytes)
        with mmap.mmap(file.fileno(), count_bytes) as held:
            place = ctypes.c_char.from_buffer(held)
            yield ctypes.CDLL(None).mlock(ctypes.byref(place), ctypes.c_size_t(count_bytes)) == 0
            del place


def may_lock() -> bool:
    """Tells whether this user may lock memory: root may, others a few MiB."""
    with tempfile.TemporaryDirectory() as folder, held_by_nobody(Path(folder), 64 * MIB) as is_held:
        return is_held


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.resize(1280, 900)
        yield page


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Somebody else's browser."""
    with chromium(tmp_path_factory.mktemp("other")) as page:
        page.resize(1280, 900)
        yield page


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Two services of which one is up at a time, and a third."""
    home = Home(tmp_path_factory.mktemp("stage"))
    tables = [TABLE.format(name=name, model=demo_model(), group=group) for name, group in
              (("one", "pair"), ("two", "pair"), ("frail", "alone"))]  # fmt: skip
    home.configure(WATCH + "".join(tables), limits="restart_window_s = 3600\nstop_grace_s = 60")
    home.run("up", "one")
    yield home
    assert home.end() == {}


@pytest.mark.elsewhere(may_lock(), "the right to lock memory")
def test_of_two_who_switch_at_once_one_is_told_and_both_see_it_settle(stage: Home, page: Page, other: Page) -> None:
    switch = of("two", "[data-deed=switch]")
    for person in (page, other):
        log_in(person, stage)
        sees(person, "that it may be switched to", f"document.querySelector({switch!r}).ariaDisabled === 'false'")
        person.click(switch)
    assert "This stops one" in reads(page, "dialog p")
    engine = stage.await_state("one", State.READY).pid or 0
    os.kill(engine, signal.SIGSTOP)  # what is taken while it ends is not what others had before
    page.press("Enter", ENTER)
    stage.await_state("one", State.STOPPING)
    with held_by_nobody(stage.folder, 2 * GIB):  # so that its memory is not back when it has ended
        os.kill(engine, signal.SIGCONT)
        for person in (page, other):
            sees(person, "the settling", f"document.querySelector({of('one')!r}).dataset.state === 'SETTLING'")
            assert "A switch to two is under way" in reads(person, ".said")
        other.press("Enter", ENTER)
        sees(other, "why not", "document.querySelector('.notice.bad')?.textContent.includes('a switch to two is under way')")
    for person in (page, other):
        sees(person, "the new one", f"document.querySelector({of('two')!r}).dataset.state === 'READY'")
        sees(person, "the old one", f"document.querySelector({of('one')!r}).dataset.state === 'STOPPED'")
        sees(person, "that it is over", "document.querySelector('.said').hidden")
    assert [stage.service(name).state for name in ("one", "two")] == [State.STOPPED, State.READY]
    assert is_clean(page, stage)


def kill_engine(home: Home, name: str) -> None:
    """Kills the engine of a service and waits until it is started again."""
    before = home.service(name).restarts
    os.kill(home.await_state(name, State.READY).pid or 0, signal.SIGKILL)
    wait_for("a restart", lambda: home.service(name).restarts > before)


def test_an_alert_appears_and_is_gone_with_what_it_was_about(stage: Home, page: Page) -> None:
    log_in(page, stage)
    stage.run("up", "frail")
    for _ in range(2):
        kill_engine(stage, "frail")
    sees(page, "the alert", f"document.querySelector({of('frail', '.alerts')!r}).textContent.includes('frail')")
    assert "restart" in reads(page, of("frail", ".alerts")).lower()
    stage.run("down", "frail", "--forget")
    sees(page, "no alert", f"document.querySelector({of('frail', '.alerts')!r}).textContent === ''")
    assert reads(page, of("frail", ".state")) == "NOT STARTED"
    assert is_clean(page, stage)


def test_an_alert_that_is_over_leaves_the_page_by_itself(home: Home, page: Page) -> None:
    home.configure(WATCH, limits="restart_window_s = 20")
    home.add_fake("frail", counts=3)
    home.run("up", "frail")
    log_in(page, home)
    alerts = of("frail", ".alerts")
    assert reads(page, alerts) == ""
    for _ in range(2):
        kill_engine(home, "frail")
    sees(page, "the alert", f"document.querySelector({alerts!r}).textContent.includes('dies and is started')")
    await_state(page, "READY")
    # Its window, and the minute for which it must not be so: nobody does anything meanwhile.
    sees(page, "no alert", f"document.querySelector({alerts!r}).textContent === ''", RESOLVED_S)
    assert reads(page, of("frail", ".state")) == "READY"
    assert home.daemon.watch().alerts == ()
    assert is_clean(page, home)


@pytest.mark.parametrize("name", ["<img src=x onerror=alert(1)>", "%", "%E0%A4%A"])
def test_a_name_that_is_markup_or_nonsense_is_text(stage: Home, page: Page, name: str) -> None:
    log_in(page, stage)
    visit(page, f"#/service/{name}/plan")
    sees(page, "that there is none", "document.querySelector('main').textContent.includes('There is no service called')")
    assert name in reads(page, "main")
    assert page.run("document.querySelectorAll('main img').length") == 0
    assert is_clean(page, stage)


def test_a_session_that_is_over_leads_to_the_login_and_back(stage: Home, page: Page) -> None:
    log_in(page, stage)
    port = stage.daemon.url.rpartition(":")[2]
    stage.kill_daemon()
    stage.paths.control_key_file.unlink()  # with another key all sessions are over
    config = stage.paths.config.read_text()
    stage.paths.config.write_text(config.replace("port = 0", f"port = {port}"))
    stage.run("switch", "two")
    sees(page, "the login", "document.querySelector('form.login')?.textContent.includes('The session is over.')")
    assert page.run("document.querySelectorAll('article').length") == 0
    log_in(page, stage)
