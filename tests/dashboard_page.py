"""The dashboard as a person has it open in a real Chromium: what is seen, pressed and waited for."""

from __future__ import annotations

import json
from typing import Any

from browser import Page
from home import Home, wait_for

BACKSPACE, ENTER, TAB = 8, 13, 9


def sees(page: Page, what: str, script: str, limit_s: float = 60.0) -> Any:
    """Waits until a script says something that is not false."""
    return wait_for(what, lambda: page.run(f"(() => {script})()"), limit_s)


def reads(page: Page, what: str) -> str:
    """Returns the text of an element."""
    return str(page.run(f"document.querySelector({json.dumps(what)})?.textContent ?? ''"))


def log_in(page: Page, home: Home, **wish: str) -> None:
    """Opens the dashboard as somebody who has its key."""
    page.visit("about:blank")  # what was open before does not ask any more
    page.ask("Network.clearBrowserCookies")
    page.visit(f"{home.daemon.url}/", **wish)
    sees(page, "the login", "document.activeElement?.id === 'key'")
    page.type(home.paths.control_key_file.read_text().strip())
    page.press("Enter", ENTER)
    sees(page, "the services", "document.querySelector('article.service') !== null")


def visit(page: Page, view: str) -> None:
    page.run(f"location.hash = {json.dumps(view)}")


def await_state(page: Page, state: str) -> None:
    sees(page, state, f"document.querySelector('article.service')?.dataset.state === '{state}'")


def is_clean(page: Page, home: Home) -> bool:
    """Fails where anything went wrong in the page, or anything was asked of anybody else."""
    assert page.faults() == []
    assert {url for url in page.requests() if not url.startswith(home.daemon.url)} == set()
    assert page.run("document.title") == "Stoker"
    return True
