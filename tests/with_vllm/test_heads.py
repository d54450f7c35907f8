"""The demo model's EAGLE and EAGLE-3 heads in the real vLLM on the processor: the same words, and figures as it counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_drafts import check_measured_as_counted, check_same_words
from gpu_home import MODELS, Engine, GpuHome, Said, kept
from vllm_home import PYTHON

PROMPTS = 40
VLLM = Engine(
    "vllm", PYTHON, "0.32.0", "vllm.entrypoints.openai.api_server", 'enforce-eager = true, dtype = "float32"', python=PYTHON
)
HEADS = ("eagle", "eagle3")
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the vLLM that `make test-engines` makes")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A Stoker with a service for each head and one without, one of which runs at a time."""
    tables = [VLLM.table("plain")]
    tables += [VLLM.table(kind, f'speculation = "{kind}"\ndraft = "{MODELS}/hf-{kind}"\ndraft_tokens = 4') for kind in HEADS]
    with kept(GpuHome(tmp_path_factory.mktemp("heads"), VLLM, "".join(tables))) as home:
        yield home


@pytest.fixture(scope="module")
def plain(home: GpuHome) -> list[Said]:
    """What the model says without drafts."""
    home.bring_up("plain")
    said = home.say_greedily("plain", PROMPTS, with_gaps=True)
    home.run("down")
    return said


@pytest.mark.parametrize("head", HEADS)
def test_a_head_says_the_same_and_is_measured_as_vllm_counts_itself(home: GpuHome, plain: list[Said], head: str) -> None:
    home.bring_up(head)
    check_measured_as_counted(home, head)
    check_same_words(home, head, plain)
    home.run("down")
