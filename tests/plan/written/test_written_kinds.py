"""Which reader a file gets, by its name and by what stands in it, and what is said of files that no reader takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.errors import StokerError, WrongUse
from stoker.plan.written.read import read_written
from support import fails

FOLDER = Path(os.environ.get("STOKER_RECIPES") or "/nonexistent")
PUBLISHED = [file for kind in ("scripts", "compose", "systemd") for file in sorted((FOLDER / kind).glob("*"))]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("run", "#!/bin/bash\ncat > x <<E\n[Unit]\nE\nvllm serve m", "command"),
        ("run.sh", "vllm serve m", "command"),
        ("notes", "\ufeffvllm serve m", "command"),
        ("notes", "docker run x vllm serve m", "docker"),
        ("compose.yaml", "services: {a: {image: vllm/vllm-openai, command: m}}", "compose"),
        ("stack", "# mine\nservices:\n  a: {image: vllm/vllm-openai, command: m}", "compose"),
        ("x.service.in", "[Service]\nExecStart=/bin/vllm serve m", "systemd"),
        ("x.container", "[Container]\nImage=vllm/vllm-openai\nExec=m", "systemd"),
        ("Dockerfile", "FROM vllm/vllm-openai", "docker"),
        ("overlay", "# mine\nFROM vllm/vllm-openai AS x", "docker"),
        ("sudoers.d/llm", "u ALL=ALL", "sudoers"),
        ("llm", "u ALL=(root) NOPASSWD: /bin/x", "sudoers"),
        ("sparkrun.yaml", "model: a/b\nruntime: vllm\ncommand: vllm serve {model}", "recipe"),
        ("swap.yaml", "models: {a: {cmd: llama-server -m x.gguf}}", "llama-swap"),
    ],
)
def test_a_file_is_read_as_what_it_is(name: str, text: str, kind: str) -> None:
    [recipe] = read_written(text, name)
    assert recipe.kind == kind
    assert recipe.source == name
    assert recipe.line > 0 or kind == "recipe"


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("x.yaml", "scrape_configs: []", WrongUse, "a compose file"),
        ("x.yaml", "[1, 2]", WrongUse, "no kind that is known"),
        ("x.yaml", "a: [", StokerError, "not valid YAML"),
        ("x.sh", "echo hello", StokerError, "starts no engine"),
        ("x", "", StokerError, "starts no engine"),
        ("sudoers", "Defaults env_reset", StokerError, "grants no command"),
        ("Dockerfile", "RUN x", StokerError, "no FROM"),
        ("x.service", "[Unit]\n", StokerError, "no directives"),
        ("compose.yml", "services: {}", StokerError, "0 services"),
        ("x", "x" * 4_000_001, WrongUse, "longer than"),
    ],
)
def test_a_file_without_a_launch_is_named_with_the_reason(name: str, text: str, error: type[StokerError], said: str) -> None:
    with fails(error, said):
        read_written(text, name)


def test_services_without_an_engine_stay_out_where_others_have_one() -> None:
    both = "services: {web: {image: nginx}, a: {image: vllm/vllm-openai, command: m}}"
    assert [recipe.name for recipe in read_written(both, "compose.yml")] == ["a"]
    alone = "services: {web: {image: nginx, restart: always}}"
    assert read_written(alone, "compose.yml")[0].container == {"restart": ("always",)}


def test_a_key_that_stands_twice_is_told() -> None:
    [recipe] = read_written("services:\n  a:\n    image: x\n    image: vllm/vllm-openai\n    command: m", "compose.yml")
    assert recipe.image == "vllm/vllm-openai"
    assert any("`services.a.image` stands twice" in said for said in recipe.unknown)


def test_quotes_that_do_not_pair_in_a_compose_command_are_told() -> None:
    [recipe] = read_written('services: {a: {image: vllm/vllm-openai, command: "m --x \'y"}}', "compose.yml")
    assert recipe.words == ("m", "--x", "'y")
    assert any("quotes of the command do not pair" in said for said in recipe.unknown)


def test_a_unit_fills_in_its_own_variables_only() -> None:
    unit = "[Service]\nEnvironment='A=1 2' B=3\nExecStart=/bin/vllm serve $A --b ${B} --c ${C} --d $$E --f 50%%\n"
    [recipe] = read_written(unit, "x.service")
    assert recipe.words == ("1", "2", "--b", "3", "--c", "${C}", "--d", "$E", "--f", "50%")
    assert recipe.unknown == ("`${C}` is not set in the unit",)


def test_escapes_count_inside_the_quotes_of_a_unit() -> None:
    [recipe] = read_written('[Service]\nExecStart=/bin/vllm serve m --a "b \\"c\\"" --d \'{"e": 1}\' --f g\\xh', "x.service")
    assert recipe.words == ("m", "--a", 'b "c"', "--d", '{"e": 1}', "--f", "g\\xh")


@pytest.mark.elsewhere(bool(PUBLISHED), "other people's launches in the folder that STOKER_RECIPES names")
@pytest.mark.parametrize("file", PUBLISHED or [Path("/")], ids=lambda file: file.name)
def test_a_published_launch_is_read(file: Path) -> None:
    [recipe] = read_written(file.read_text(), file.name)
    assert recipe.engine in ("vllm", "sglang") or recipe.kind in ("sudoers", "systemd")
    if recipe.engine is not None:
        assert recipe.model
        assert recipe.line
        assert not any(word.startswith("{") and not word.endswith("}") for word in recipe.words)
