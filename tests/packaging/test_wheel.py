"""The wheel holds the package and the two GGUFs, stays small, and gives a working command."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 20_000_000
MODEL_FILE_LIMIT_BYTES = 16_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The wheel, built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    yield wheel


def test_the_wheel_is_small_and_holds_only_the_ggufs_of_the_demo(wheel: Path) -> None:
    assert wheel.stat().st_size < LIMIT_BYTES
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        models = {Path(name).name: files.getinfo(name).file_size for name in names if "demo_model" in name}
    assert set(models) == {"stoker-demo-Q8_0.gguf", "stoker-demo-draft-Q8_0.gguf"}
    assert models["stoker-demo-Q8_0.gguf"] > 5_000_000
    assert not [name for name in names if name.endswith((".safetensors", "pyproject.toml", "test.py"))]
    assert any(name.endswith("py.typed") for name in names)
    assert any(name.endswith("rules/data/sglang/attention.toml") for name in names)
    assert any(name.endswith("facts/engine/catalogs/vllm/0.26.0.json") for name in names)
    assert any(name.endswith("facts/machine/boxes/gb10.json") for name in names)
    for name in ("uPlot.iife.min.js", "uPlot.min.css", "LICENSE.uPlot", "report.js", "report.css"):
        assert f"stoker/bench/report/assets/{name}" in names
    assert {f"stoker/web/page/{name}" for name in ("index.html", "style.css", "main.js", "icon.svg")} <= set(names)
    assert {"stoker/bench/published/data/runs.toml", "stoker/bench/published/data/cells.csv"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {"stoker/pages/mcp.md", "stoker/pages/cli/mcp.md"} <= set(names)  # which are searched


def test_the_wheels_command_runs_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    show = "import stoker.config as c; print(c.__file__, c.demo_model().stat().st_size, c.demo_model(True).stat().st_size)"
    environment = {"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", show], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(target))
    script = target / "bin" / "stoker"
    done = subprocess.run(
        [sys.executable, str(script), "--version"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("stoker, version ")


def test_every_model_file_is_under_16_mb() -> None:
    files = [file for file in (ROOT / "models" / "demo").rglob("*") if file.suffix in (".gguf", ".safetensors")]
    kept = [file for file in files if "build" not in file.parts]
    assert len(kept) >= 4
    assert all(file.stat().st_size < MODEL_FILE_LIMIT_BYTES for file in kept)


def test_every_dependency_is_pinned_with_hashes_and_no_registry() -> None:
    for name in ("run", "dev"):
        text = (ROOT / "lock" / f"{name}.txt").read_text()
        assert "://" not in text
        pins = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert pins
        assert all("==" in pin and pin.endswith("\\") for pin in pins)
        assert text.count("--hash=sha256:") >= len(pins)
