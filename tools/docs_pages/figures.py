"""`docs/figures.md`: every figure of a benchmark, from the records."""

from __future__ import annotations

from stoker.records import FIGURES

HEAD = """# Figures of a benchmark

<!-- Written by tools/make_docs.py from stoker.records.FIGURES. -->

Seconds (`_s`), tokens per second (`_tps`) and shares, by the names that `--json` and the store use. How they are
measured: [bench](bench.md).

| name | what it is |
|---|---|
"""


def pages() -> dict[str, str]:
    """Returns the page by its path in `docs/`."""
    return {"figures.md": HEAD + "".join(f"| `{name}` | {text} |\n" for name, text in FIGURES.items())}
