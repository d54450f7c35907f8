"""The whole way of an alert: real llama.cpp, daemon, Prometheus, Alertmanager, webhook."""

from __future__ import annotations

from pathlib import Path

from home import Home, wait_for
from monitoring import asking, monitored
from stoker.config import demo_model
from useless_drafts import write_useless_gguf

SCALE = 1 / 100  # fifteen minutes are nine seconds
SERVICE = '[service.coder]\nmodel = "{model}"\nspeculation = "draft"\ndraft = "{draft}"\ngate = []\nreasoning = "off"\n'
LONG_S = 240.0


def test_a_draft_that_foresees_nothing_is_told_to_the_webhook_and_so_is_its_end(home: Home, tmp_path: Path) -> None:
    good, useless = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf"), tmp_path / "useless.gguf"
    write_useless_gguf(good, useless)

    def draft_with(draft: Path) -> None:
        home.configure(SERVICE.format(model=demo_model(), draft=draft))
        home.run("up", "coder")

    draft_with(good)
    with monitored(home, SCALE, "--engine-metrics") as monitoring, asking(home, "coder"):
        # The median of what is usual begins fifteen scaled minutes ago: before, nothing can have fallen.
        usual = wait_for("a usual accept_rate", lambda: monitoring.value("stoker:accept_rate:15m offset 20s"), LONG_S)
        assert usual > 0.3
        assert monitoring.value('{__name__="llamacpp:tokens_predicted_total",service="coder"}'), "passed on as it is"
        draft_with(useless)
        alert = monitoring.await_alert("StokerAcceptRateDropped", "firing", LONG_S)
        assert alert["labels"]["service"] == "coder"
        assert alert["annotations"]["summary"] == "accept_rate of coder fell far below its usual one"
        fallen = monitoring.value("min_over_time(stoker:accept_rate:15m[1m])")
        assert fallen is not None
        assert fallen < usual / 2
        draft_with(good)
        monitoring.await_alert("StokerAcceptRateDropped", "resolved", LONG_S)
        wait_for("the rate to be back", lambda: (monitoring.value("stoker:accept_rate:15m") or 0) > usual / 2, LONG_S)
        assert monitoring.value("max_over_time(stoker_gateway_substituted_answers_total[10m])") == 0
