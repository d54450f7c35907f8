"""The dashboard of one door, in a real Chromium, while a linked box goes and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from browser import CHROMIUM, chromium
from dashboard_page import is_clean, log_in, reads, sees
from home import wait_for
from net_boxes import IN_NAMESPACES, Trio

pytestmark = [IN_NAMESPACES, pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")]
B, C = "[aria-label='box b']", "[aria-label='box c']"
SEEN_S = 4.0  # 2 s for the door, half a second for the page, and the rest for a browser on a busy machine


def test_each_box_has_a_card_with_its_memory_and_one_that_goes_is_shown_away_since_when(trio: Trio, tmp_path: Path) -> None:
    with trio.a.inside(), chromium(tmp_path / "profile") as page:
        log_in(page, trio.a)
        for card in (B, C):
            sees(page, "a card", f"document.querySelector(\"{card} .state\")?.textContent === 'HERE'")
            assert "demo READY" in reads(page, f"{card} .legend")
            sees(
                page, "its memory", f'/GiB of .* GiB available/.test(document.querySelector("{card} .bar").ariaLabel)', 25.0
            )
        assert page.run(f'parseFloat(document.querySelector("{B} .part").style.width)') > 0
        trio.net.cable(trio.b, "down")
        try:
            sees(page, "b away", f"document.querySelector(\"{B} .state\").textContent === 'AWAY'", SEEN_S)
            assert "since " in reads(page, f"{B} .row")
            assert "nothing was heard of it for 1.5 s" in reads(page, f"{B} .why")
            assert "demo AWAY" in reads(page, f"{B} .legend")
            assert reads(page, f"{B} p.dim") == "Its memory is not known."
            assert reads(page, f"{C} .state") == "HERE"
        finally:
            trio.net.cable(trio.b, "up")
        sees(page, "b back", f"document.querySelector(\"{B} .state\").textContent === 'HERE'", SEEN_S)
        assert is_clean(page, trio.a)
    wait_for("b to serve", lambda: trio.a.serves(trio.b), 5.0)
