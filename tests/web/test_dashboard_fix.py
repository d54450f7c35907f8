"""A finding in a real Chromium, and the button that has what mends it tried and written down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import CHROMIUM, Page, chromium
from dashboard_page import ENTER, await_state, is_clean, log_in, reads, sees, visit
from home import Home
from stoker.records import State

pytestmark = pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
VARIABLE = "TORCHINDUCTOR_AUTOGRAD_CACHE"
PICKLING = "_pickle.PicklingError: Can't pickle <function> while storing AOTAutograd cache"


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.resize(1280, 900)
        yield page


def test_a_finding_is_mended_by_a_button(home: Home, page: Page) -> None:
    home.add_fake("coder", dies="loading", prints=PICKLING, needs=VARIABLE)
    home.run("up", "coder", code=1)
    log_in(page, home)
    visit(page, "#/service/coder/findings")
    sees(page, "the finding", "document.querySelector('[data-deed=fix]') !== null")
    assert PICKLING in reads(page, ".finding pre[aria-label=Evidence]")
    page.click("[data-deed=fix]")
    sees(page, "the change", "document.querySelector('[data-deed=apply]') !== null")
    assert reads(page, ".diff .plus") == f"+ ${VARIABLE} 0\n"
    assert home.service("coder").state is State.FAILED
    page.click("[data-deed=apply]")
    assert "has to pass its gate" in reads(page, "dialog p")
    page.press("Enter", ENTER)
    await_state(page, "READY")
    sees(page, "that it is written", "document.querySelector('.tab [role=status]').textContent.includes('was written')")
    assert f'{VARIABLE} = "0"' in home.paths.config.read_text()
    assert is_clean(page, home)
