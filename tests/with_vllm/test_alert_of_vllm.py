"""The whole way of an alert, from two engines at once: their drafts are exchanged, and the webhook hears of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from home import wait_for
from monitoring import Monitoring, asking, monitored
from stoker.config import demo_model
from useless_drafts import write_useless_folder, write_useless_gguf
from vllm_home import DEMO, EAGER, MODULE, PYTHON, VllmHome, write_service

pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")
SCALE = 1 / 45  # fifteen minutes are twenty seconds
LONG_S = 400.0
HAS_ITL = 'stoker_engine_inter_token_seconds_count{service="guessing",engine="vllm"}'
GGUF = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf")
CODER = """[service.coder]
model = "{model}"
speculation = "draft"
draft = "{draft}"
gate = []
reasoning = "off"
"""
USUAL = "{} offset 25s"
ENGINES = {"coder": "llamacpp", "guessing": "vllm"}


@pytest.fixture
def vllm(tmp_path: Path) -> Iterator[VllmHome]:
    """A Stoker whose services are still to be written."""
    home = VllmHome(tmp_path)
    yield home
    assert home.end() == {}


def draft_with(home: VllmHome, gguf: Path, folder: Path) -> None:
    """Has llama.cpp draft with a file, and vLLM with a folder."""
    more = f'speculation = "draft"\ndraft = "{folder}"\ndraft_tokens = 3\ngate = []\n{EAGER}'
    home.configure(write_service("guessing", MODULE, more) + CODER.format(model=demo_model(), draft=gguf))
    for name in ENGINES:
        home.bring_up(name)


def rate(monitoring: Monitoring, name: str, of: str = "{}") -> float | None:
    """Returns a service's accept_rate, as one Prometheus has it of all."""
    labels = f'{{service="{name}",engine="{ENGINES[name]}"}}'
    return monitoring.value(of.format(f"stoker:accept_rate:15m{labels}"))


def test_drafts_of_two_engines_that_foresee_nothing_are_told_to_the_webhook(vllm: VllmHome, tmp_path: Path) -> None:
    useless_gguf, useless_folder, good = tmp_path / "useless.gguf", tmp_path / "useless", DEMO.with_name("hf-draft")
    write_useless_gguf(GGUF, useless_gguf)
    write_useless_folder(good, useless_folder)
    draft_with(vllm, GGUF, good)
    with monitored(vllm, SCALE, "--engine-metrics") as monitoring, ExitStack() as asked:
        for name in ENGINES:
            asked.enter_context(asking(vllm, name))
        usual = {name: wait_for(f"{name}'s usual rate", partial(rate, monitoring, name, USUAL), LONG_S) for name in ENGINES}
        assert min(usual.values()) > 0.3, usual
        assert monitoring.value(HAS_ITL)
        assert monitoring.value('sum({__name__="vllm:generation_tokens_total",service="guessing"})')
        assert monitoring.value('{__name__="llamacpp:tokens_predicted_total",service="coder"}')
        draft_with(vllm, useless_gguf, useless_folder)
        told = monitoring.await_alerts("StokerAcceptRateDropped", "firing", set(ENGINES), LONG_S)
        for name, engine in ENGINES.items():
            labels = told[name]["labels"]
            assert labels | {"service": name, "engine": engine, "severity": "warning"} == labels
            fallen = rate(monitoring, name, "min_over_time({}[1m])")
            assert fallen is not None
            assert fallen < usual[name] / 2, name
