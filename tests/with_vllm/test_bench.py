"""The real vLLM on the processor, with n-grams and with a draft model: what is measured of it is what it counted itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_seen import figures, run_bench
from stoker.counters import Counters, read_counters
from stoker.records import BenchLoad, Target
from vllm_home import DEMO, EAGER, MODULE, PYTHON, VllmHome, write_service

DRAFT = DEMO.with_name("hf-draft")
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")
KINDS = {
    "ngram": f'speculation = "ngram"\ndraft_tokens = 3\n{EAGER}',
    "draft": f'speculation = "draft"\ndraft = "{DRAFT}"\ndraft_tokens = 3\n{EAGER}',
}


@pytest.fixture(params=KINDS)
def vllm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmHome]:
    """A Stoker with one service that speculates in one way."""
    home = VllmHome(tmp_path_factory.mktemp("vllm"))
    home.configure(write_service("guessing", MODULE, KINDS[request.param]))
    home.bring_up("guessing")
    yield home
    assert home.end() == {}


def counters(home: VllmHome) -> Counters:
    """Returns what the engine itself has counted."""
    found = read_counters(home.ask_engine(home.service("guessing"), "/metrics"))
    assert found is not None
    return found


def test_accept_figures_and_lengths_are_exactly_vllms_own(vllm: VllmHome, tmp_path: Path) -> None:
    repeating = tmp_path / "repeating.txt"  # so that n-grams are met again
    repeating.write_text("\n\n".join(["One two three four five six seven eight nine ten. " * 4] * 5))
    before: list[Counters] = []

    def look(text: str) -> None:
        if text.startswith("run"):  # the warm-up is over, and the prompts are only tokenized after it
            before.append(counters(vllm))

    key = vllm.paths.engine_key_file.read_text().strip()
    target = Target(f"{vllm.daemon.url}/v1", "guessing", vllm.daemon.key, vllm.service("guessing").address, key)
    load = BenchLoad("closed", 2)
    run = run_bench(
        target, prompts=(200,), new=160, loads=(load,), content=str(repeating), runs=1, tell=look, silence_s=120.0
    )
    after = counters(vllm)
    [cell] = run.cells
    assert (cell.failed, cell.counted_by, cell.warnings) == (0, ("usage",), ())
    requests = cell.repeats[0].requests
    assert [(one.prompt_tokens, one.output_tokens, one.is_split_known) for one in requests] == [(200, 160, True)] * 2
    grown, told = after.since(before[0]), cell.speculation
    assert told is not None
    assert told.draft_tokens == grown["draft_tokens_total"] > 0
    assert (told.accepted_tokens, told.verify_steps) == (grown["accepted_tokens_total"], grown["drafts_total"])
    assert told.accept_rate == grown["accepted_tokens_total"] / grown["draft_tokens_total"]
    assert told.accept_length == 1 + grown["accepted_tokens_total"] / grown["drafts_total"]
    assert figures(run)["accept_rate"] == told.accept_rate
    assert len(told.accept_rate_by_position or ()) == 3
    assert grown["generated_tokens_total"] == 320
