"""How tests of GPUs are run: each engine with its own card and no other engine, one part after the other whatever failed."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gpu_tests import Part, environment_of, find_cards, run_engine, with_tests

ROOT = Path(__file__).parents[2]
ONE_CORE = "import os\n\ndef test_a(): assert os.sched_getaffinity(0) == {CORE}\n"
# Not named as the folder is that it lies in, which pytest asks by -k too where both are below one folder.
TWO = "import os\n\ndef test_card(): assert os.environ['CUDA_VISIBLE_DEVICES'] == '3'\n\ndef test_break(): assert False\n"
PLAIN = ("-p", "no:cacheprovider")


def test_each_engine_is_alone_on_its_card(tmp_path: Path) -> None:
    own = {"STOKER_SGLANG_SITE": "/s", "STOKER_VLLM_SITE": "/v", "HOME": "/h"}
    found = environment_of("vllm", "3", own, tmp_path)
    assert found == {
        "STOKER_VLLM_SITE": "/v", "HOME": "/h", "CUDA_VISIBLE_DEVICES": "3", "STOKER_GPU_OUT": str(tmp_path),
    }  # fmt: skip


def test_the_cards_are_those_that_may_be_used_or_all_that_the_driver_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_cards({"CUDA_VISIBLE_DEVICES": "2,5"}) == ["2", "5"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="there is no GPU here"):
        find_cards({})
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: one'\necho 'GPU 1: other'\n")
    program.chmod(0o755)
    assert find_cards({}) == ["0", "1"]


def test_a_part_that_fails_is_told_and_the_next_one_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_two.py").write_text(TWO)
    parts = tuple(Part(name, (*PLAIN, "-k", name)) for name in ("test_break", "test_card", "test_none"))
    environment = environment_of("sglang", "3", os.environ, tmp_path)
    assert not run_engine("sglang", parts, environment, [str(tmp_path / "test_two.py")])
    told = capsys.readouterr().out
    assert [line.split(" s, ")[1].split(" in ")[0] for line in told.splitlines() if " s, " in line] == [
        "1 failed, 1 deselected", "1 passed, 1 deselected", "2 deselected",
    ]  # fmt: skip
    assert "assert False" in told
    assert run_engine("sglang", parts[1:], environment, [str(tmp_path / "test_two.py")])


def test_a_word_that_chooses_among_tests_is_taken_for_no_file_of_them() -> None:
    one = "tests/with_gpu/test_gpu_card.py::test_it"
    for word in ("verified", "tools"):  # there is a folder of this name
        assert with_tests(["-k", word]) == ["-k", word, "tests/with_gpu"]
    assert with_tests(["-k", "verified", one]) == ["-k", "verified", one]


def test_an_engine_keeps_to_its_cores(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    (tmp_path / "test_one.py").write_text(ONE_CORE.replace("CORE", str(core)))
    environment = environment_of("sglang", "3", os.environ, tmp_path)
    words = [str(tmp_path / "test_one.py")]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run_engine, "sglang", (Part("one", PLAIN),), environment, words, {core}).result()


def test_without_an_engine_it_says_what_is_wanted() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.gpu_tests"], cwd=ROOT, env={"PATH": os.environ["PATH"]},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("no engine is named: STOKER_SGLANG_SITE or STOKER_VLLM_SITE")
