"""What is known of a model, said in rows."""

from __future__ import annotations

from pathlib import Path

from checkpoints import QWEN_36, WHOLE, linear, mistral_4, qwen_36, write_checkpoint
from stoker.facts.model.read import read_model
from stoker.flows.models import describe_model
from stoker.records import MissingFile
from support import make_model


def test_everything_that_is_known_has_a_row(tmp_path: Path) -> None:
    rows = dict(describe_model(read_model(write_checkpoint(tmp_path / "m", qwen_36(), QWEN_36, **WHOLE))))
    assert rows["architecture"] == "Qwen3_5MoeForConditionalGeneration"
    assert rows["format"] == "safetensors; complete for: transformers"
    assert rows["experts"] == "256, 8 a token"
    assert rows["draft layers"] == "1 of its own (MTP)"
    assert rows["KV cache"] == "20,480 bytes a token in 16 bits"
    assert rows["parameters"].endswith("billion a token")
    assert rows["vision"] == "it sees images"
    assert "missing" not in rows


def test_what_is_not_known_is_called_so() -> None:
    model = make_model(parameters=None, context_tokens=None, kv_bytes_per_token=None, licence=None, quantisation=None)
    rows = dict(describe_model(model))
    assert [rows[name] for name in ("parameters", "context", "KV cache", "licence", "quantisation")] == ["unknown"] * 5


def test_each_missing_file_and_each_problem_has_a_row_of_its_own(tmp_path: Path) -> None:
    model = read_model(write_checkpoint(tmp_path / "m", mistral_4(1, 2), params__json={"dim": 4096}))
    rows = [value for name, value in describe_model(model) if name in ("missing", "problem")]
    assert len(rows) == len(model.missing) + len(model.problems)
    guessed = make_model(missing=(MissingFile("config.json", "org/name", "it is needed", is_guess=True),))
    assert ("missing", "config.json: it is needed; take it from org/name (a guess from the name)") in describe_model(guessed)


def test_a_draft_head_is_called_one(tmp_path: Path) -> None:
    config = {"architectures": ["LlamaForCausalLMEagle3"]}
    model = read_model(write_checkpoint(tmp_path / "m", linear("fc", 8, 8), config))
    assert dict(describe_model(model))["architecture"] == "LlamaForCausalLMEagle3, a draft head and no model of its own"
