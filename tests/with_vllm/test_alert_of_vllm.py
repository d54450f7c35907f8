"""The whole way of an alert with the real vLLM: its draft is exchanged for a useless one, and the webhook hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from home import wait_for
from monitoring import asking, monitored
from useless_drafts import write_useless_folder
from vllm_home import DEMO, EAGER, MODULE, PYTHON, VllmHome, write_service

pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")
SCALE = 1 / 45  # fifteen minutes are twenty seconds
LONG_S = 400.0
HAS_ITL = 'stoker_engine_inter_token_seconds_count{service="guessing",engine="vllm"}'


@pytest.fixture
def vllm(tmp_path: Path) -> Iterator[VllmHome]:
    """A Stoker whose services of vLLM are still to be written."""
    home = VllmHome(tmp_path)
    yield home
    assert home.end() == {}


def test_a_draft_that_foresees_nothing_is_told_to_the_webhook(vllm: VllmHome, tmp_path: Path) -> None:
    good, useless = DEMO.with_name("hf-draft"), tmp_path / "useless"
    write_useless_folder(good, useless)

    def draft_with(draft: Path) -> None:
        more = f'speculation = "draft"\ndraft = "{draft}"\ndraft_tokens = 3\ngate = []\n{EAGER}'
        vllm.configure(write_service("guessing", MODULE, more))
        vllm.bring_up("guessing")

    draft_with(good)
    with monitored(vllm, SCALE, "--engine-metrics") as monitoring, asking(vllm, "guessing"):
        usual = wait_for("a usual accept_rate", lambda: monitoring.value("stoker:accept_rate:15m offset 25s"), LONG_S)
        assert usual > 0.3
        assert monitoring.value(HAS_ITL)
        assert monitoring.value('sum({__name__="vllm:generation_tokens_total",service="guessing"})')
        draft_with(useless)
        alert = monitoring.await_alert("StokerAcceptRateDropped", "firing", LONG_S)
        assert alert["labels"] | {"service": "guessing", "engine": "vllm", "severity": "warning"} == alert["labels"]
        fallen = monitoring.value("min_over_time(stoker:accept_rate:15m[1m])")
        assert fallen is not None
        assert fallen < usual / 2
