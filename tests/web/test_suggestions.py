"""The first visit with nothing configured: models that lie here are planned and ranked, and one button serves one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import CHROMIUM, Page, chromium
from checkpoints import write_checkpoint
from dashboard_page import is_clean, log_in, reads, sees
from home import Home
from page_client import Browser
from stoker.config import demo_model
from stoker.flows.suggesting import suggest
from stoker.records import State

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
    "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A person's home with two models in it, and a file that only looks like one."""
    models = tmp_path / "person/models"
    models.mkdir(parents=True)
    (models / "little.gguf").symlink_to(demo_model())
    (models / "broken.gguf").write_bytes(b"GGUF, it says")
    write_checkpoint(models / "Tiny-1M", {"model.embed_tokens.weight": ("BF16", (1000, 64))}, LLAMA)
    return tmp_path / "person"


def test_models_here_come_ranked_with_their_reasons(user: Path) -> None:
    view = suggest({"HOME": str(user)}, "gb10")
    by_target = {one.target: one for one in view.suggestions}
    little = by_target[str(user / "models/little.gguf")]
    assert view.found == 3
    assert str(user / "models/broken.gguf") not in by_target
    assert (little.service, little.reach, little.engine) == ("little", "now", "llamacpp")
    assert little.because[0].startswith("expected ")
    assert "for engines" in little.because[1]
    assert [one.reach for one in view.suggestions][-1] == "elsewhere"
    assert by_target["gpt-oss-120b"].reach == "elsewhere"


def test_what_cannot_be_started_says_what_to_do(user: Path) -> None:
    [blocked] = [one for one in suggest({"HOME": str(user)}).suggestions if one.target.endswith("Tiny-1M")]
    assert blocked.reach == "blocked"
    assert blocked.obstacle


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("profile")) as page:
        page.resize(1280, 900)
        yield page


@pytest.mark.elsewhere(bool(CHROMIUM), "Chromium")
def test_a_model_is_served_by_its_button(home: Home, page: Page, user: Path) -> None:
    home.environment |= {"HOME": str(user)}
    home.run("up")
    home.run("down", "demo", "--forget")
    assert Browser(home, looks_on=True).send("GET", "/api/suggestions").json()["found"] == 3
    log_in(page, home)
    best = "[data-serve$='little.gguf'].main"
    sees(page, "the model", f'document.querySelector("{best}") !== null')
    assert "NOT STARTED" in reads(page, ".state")  # the demo, which always works
    page.click(best)
    sees(page, "that it is served", "document.querySelector('article.service')?.ariaLabel === 'little'")
    home.await_state("little", State.READY)
    sees(page, "no first visit any more", "document.querySelector('.first').hidden")
    assert is_clean(page, home)
