"""Takes docs/dashboard.png from the real thing: a daemon, the demo model with its draft, some work, and Chromium.

`python tools/picture_dashboard.py [FILE]`; needs chromium, and two minutes, so that there is something to draw.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from browser import Page, chromium  # noqa: E402
from home import Home, wait_for  # noqa: E402
from stoker.flows.ask import ask  # noqa: E402

WIDTH, HEIGHT = 1200, 490
HAS_PACE = "/\\d/.test(document.querySelector('[data-state=READY] .figures dd')?.textContent ?? '')"
WORK_S, LAST_S = 75.0, 3.0
TEXTS = (
    "Who are you?",
    "Write a function that adds two numbers.",
    "What is 7 + 5?",
    "Tell me about yourself in many words.",
)


def work(home: Home, until: float) -> None:
    """Asks one question after the other."""
    at = 0
    while time.monotonic() < until:
        for _ in ask(home.daemon, "stoker-demo", TEXTS[at % len(TEXTS)], think=False, max_tokens=200, temperature=0.7):
            pass
        at += 1


def picture(page: Page, home: Home) -> bytes:
    """Returns the page as somebody sees it who has just logged in."""
    page.resize(WIDTH, HEIGHT)
    page.visit(f"{home.daemon.url}/", scheme="light")
    wait_for("the login", lambda: page.run("document.activeElement?.id === 'key'"))
    page.type(home.paths.control_key_file.read_text().strip())
    page.press("Enter", 13)
    wait_for("the services", lambda: page.run(HAS_PACE))
    time.sleep(LAST_S)  # the rates are over ten seconds
    return page.picture()


def main(file: Path) -> None:
    """Plays it."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        try:
            home.run("up", "demo", "--speculation", "draft")
            until = time.monotonic() + WORK_S
            workers = [threading.Thread(target=work, args=(home, until)) for _ in range(2)]
            for one in workers:
                one.start()
            with chromium(Path(folder) / "profile") as page:
                time.sleep(20)
                file.write_bytes(picture(page, home))
            for one in workers:
                one.join()
        finally:
            home.end()
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "dashboard.png")
