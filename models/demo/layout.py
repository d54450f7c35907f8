"""Where the demo model's files lie."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"
CORPUS = BUILD / "corpus"
TOKENS = BUILD / "tokens"
CHECKPOINTS = BUILD / "checkpoints"
TEMPLATE = HERE / "chat_template.jinja"
VOCABULARY = HERE / "dialogue" / "vocabulary.txt"
RESULTS = HERE / "results.json"
FIXTURES = HERE.parent.parent / "tests" / "demo_model"
HF_FOLDERS = {"target": HERE / "hf", "draft": HERE / "hf-draft", "eagle": HERE / "hf-eagle", "eagle3": HERE / "hf-eagle3"}
GGUF_STEMS = {"target": "stoker-demo", "draft": "stoker-demo-draft"}


def gguf_path(role: str, kind: str, folder: Path = HERE) -> Path:
    """The GGUF file of a role (`target` or `draft`) in one weight type, such as `Q8_0`."""
    return folder / f"{GGUF_STEMS[role]}-{kind}.gguf"
