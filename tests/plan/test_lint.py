"""Launches that people wrote, each with what `stoker lint` has to say of it, and what follows for the command."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from known import GB10, MISTRAL, NIGHTLY

from stoker.errors import WrongUse
from stoker.flows.lint import Linted, lint_file, lint_words
from stoker.plan.lint import lint_recipe
from stoker.plan.written.read import read_command
from stoker.rules.load import load_rules
from support import fails

CASES = Path(__file__).parent / "lint_cases"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((CASES / "expected.toml").read_text())["file"]
LEVELS = ("forbid", "warn", "note")


def find_case(name: str, folder: Path) -> Path:
    """Returns a case's file; one that is another's with changed words is written into the folder."""
    case = EXPECTED[name]
    if "base" not in case:
        return CASES / name
    text = (CASES / case["base"]).read_text()
    for words, others in case["change"].items():
        assert words in text
        text = text.replace(words, others)
    (folder / name).write_text(text)
    return folder / name


def by_level(linted: list[Linted]) -> dict[str, set[str]]:
    return {level: {f.rule for one in linted for f in one.findings if f.level == level} for level in LEVELS}


def test_every_case_has_its_expectation() -> None:
    with_file = {name for name, case in EXPECTED.items() if "base" not in case}
    assert {file.name for file in CASES.iterdir()} - {"expected.toml"} == with_file


@pytest.mark.parametrize("name", EXPECTED)
def test_a_launch_gets_what_is_known_of_it(name: str, tmp_path: Path) -> None:
    found, wanted = by_level(lint_file(find_case(name, tmp_path), "gb10")), EXPECTED[name]
    for level in LEVELS:
        assert set(wanted.get(level, [])) <= found[level]
    assert not set(wanted.get("not", [])) & set().union(*found.values())
    assert (3 if found["forbid"] else 1 if found["warn"] else 0) == wanted["exit"]


@pytest.mark.parametrize(
    "name", [name for name, wanted in EXPECTED.items() if name.startswith("sglang") and wanted["exit"] == 3]
)
def test_a_mended_command_is_refused_for_nothing_that_could_be_mended(name: str, tmp_path: Path) -> None:
    [before] = lint_file(find_case(name, tmp_path), "gb10")
    mendable = {finding.rule for finding in before.findings if finding.use or finding.drop}
    if before.mended is None:
        assert not mendable
        return
    after = by_level(lint_words(_split(before.mended), "gb10"))
    assert not mendable & after["forbid"]


def _split(text: str) -> list[str]:
    return shlex.split(text.replace("\\\n", " "), comments=True)


def test_the_mended_command_sets_what_the_rules_name(tmp_path: Path) -> None:
    [linted] = lint_file(CASES / "report-sglang-in-use.sh", "gb10")
    words = _split(linted.mended or "")
    assert words[words.index("--env") + 1] == "SGLANG_ENABLE_SPEC_V2=True"
    assert words[words.index("--host") + 1] == "127.0.0.1"
    [linted] = lint_file(find_case("sglang-flashinfer", tmp_path), "gb10")
    words = _split(linted.mended or "")
    assert words[words.index("--attention-backend") + 1] == "triton"


def test_the_same_launch_is_fine_on_another_machine(tmp_path: Path) -> None:
    on_gb10 = by_level(lint_file(find_case("sglang-flashinfer", tmp_path), "gb10"))
    on_h200 = by_level(lint_file(find_case("sglang-flashinfer", tmp_path), "h200"))
    assert on_gb10["forbid"]
    assert not on_h200["forbid"]


def test_a_flag_that_the_version_does_not_know_is_refused_with_the_nearest() -> None:
    [linted] = lint_words(["docker", "run", "vllm/vllm-openai:v0.26.0", "--model", "m", "--max-modle-len", "4"], "gb10")
    [finding] = [finding for finding in linted.findings if finding.rule == "flag-unknown"]
    assert finding.level == "forbid"
    assert "--max-model-len" in finding.fix


def test_a_flag_is_only_warned_of_where_the_version_is_a_guess() -> None:
    [linted] = lint_words(["docker", "run", "vllm/vllm-openai:v0.26.9", "--model", "m", "--max-modle-len", "4"], "gb10")
    assert {finding.level for finding in linted.findings if finding.rule == "flag-unknown"} == {"warn"}


def test_a_plain_command_is_held_against_all_versions_that_are_known() -> None:
    [linted] = lint_words(["vllm", "serve", "m", "--swap-space", "4", "--foo", "--gpu-mem-utilization", "0.5"], "gb10")
    found = [finding for finding in linted.findings if finding.rule == "flag-unknown"]
    assert {finding.level for finding in found} == {"warn"}
    assert ["--foo" in finding.what for finding in found].count(True) == 1
    assert "write --gpu-memory-utilization" in " ".join(finding.fix for finding in found)
    [linted] = lint_words(["vllm", "serve", "m", "--disable-prefix-caching", "--max-num-partial-prefills", "2"], "gb10")
    assert "flag-unknown" not in {finding.rule for finding in linted.findings}, "some versions have them"


@pytest.mark.parametrize(
    "command",
    ["vllm serve --port 1", "python -m sglang.launch_server --port 1", "docker run vllm/vllm-openai:v0.26.0 --port 1"],
)
def test_without_a_model_no_rule_about_one_model_is_told(command: str) -> None:
    [linted] = lint_words(command.split(), "gb10")
    told = [rule for rule in load_rules() if rule.id in {finding.rule for finding in linted.findings}]
    assert told
    assert [rule.id for rule in told if "model" in rule.when] == []


def test_what_is_not_read_is_said_and_is_no_clean_bill(tmp_path: Path) -> None:
    [linted] = lint_file(CASES / "lines-that-are-not-read.sh", "gb10")
    [finding] = [finding for finding in linted.findings if finding.rule == "not-understood"]
    assert "line 2" in finding.what
    assert "parallel -j2 vllm serve" in finding.what
    assert finding.what in linted.recipe.unknown
    (tmp_path / "x.sh").write_text("parallel vllm serve {} ::: a b\n")
    with fails(WrongUse, "x.sh", "line 1 seems to start an engine"):
        lint_file(tmp_path / "x.sh", "gb10")


def test_an_engine_that_takes_most_unasked_is_too_much_beside_another(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("vllm serve a/b --gpu-memory-utilization 0.2 &\nvllm serve c/d\n")
    first, second = lint_file(tmp_path / "x.sh", "gb10")
    assert "one-heavy-service-at-a-time" not in {finding.rule for finding in first.findings}
    assert "one-heavy-service-at-a-time" in {finding.rule for finding in second.findings}
    assert "one-heavy-service-at-a-time" not in {
        finding.rule for one in lint_file(tmp_path / "x.sh", "h200") for finding in one.findings
    }


def test_graph_sizes_are_bounds_however_they_are_said() -> None:
    words = f"docker run {NIGHTLY} python -m sglang.launch_server --model-path /m --attention-backend triton".split()
    for flags in (["--cuda-graph-bs", "1", "2", "64"], ["--cuda-graph-max-bs", "64"]):
        [recipe] = read_command([*words, *flags])
        found = lint_recipe(recipe, GB10, load_rules("sglang"), MISTRAL)
        assert "sglang-cuda-graph-max-bs-32" in {finding.rule for finding in found}
    [recipe] = read_command([*words, "--cuda-graph-bs", "1", "2", "32"])
    found = lint_recipe(recipe, GB10, load_rules("sglang"), MISTRAL)
    assert "sglang-cuda-graph-max-bs-32" not in {finding.rule for finding in found}


def test_findings_say_where_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "start.sh"
    file.write_text("# first\n\ndocker run --rm --restart always vllm/vllm-openai:v0.26.0 --model m\n")
    [linted] = lint_file(file, "gb10")
    assert {finding.where for finding in linted.findings} == {f"{file}:3"}


@pytest.mark.parametrize("text", ["", "echo hello\n", "\0\0\0", "cat <<E\nvllm serve x\nE\n", "services: &a [*a]\n"])
def test_a_file_without_a_launch_is_wrong_use(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.sh").write_text(text)
    with fails(WrongUse, "x.sh"):
        lint_file(tmp_path / "x.sh", "gb10")


def test_what_cannot_be_read_is_wrong_use(tmp_path: Path) -> None:
    with fails(WrongUse, "cannot be read"):
        lint_file(tmp_path / "missing.sh", "gb10")
    with (tmp_path / "huge.sh").open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    with fails(WrongUse, "larger than 4 MiB"):
        lint_file(tmp_path / "huge.sh", "gb10")
    with fails(WrongUse, "starts no engine"):
        lint_words(["echo", "hello"], "gb10")
    with fails(WrongUse, "there is no machine called `gb11`", "gb10-64"):
        lint_words(["vllm", "serve", "m"], "gb11")
