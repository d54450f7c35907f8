"""`stoker import`: what it prints, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from home import Home
from stoker.config import read_config

RECIPE = """\
recipe_version: "2"
model: example/Tiny-7B
container: registry.example/vllm:1
defaults: {port: 8000, max_model_len: 4096}
env: {HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz}
command: |
  vllm serve {model} --port {port} --max-model-len {max_model_len} --host 0.0.0.0
"""


def write_recipe(home: Home, name: str = "tiny.yaml", text: str = RECIPE) -> Path:
    """Writes a recipe; returns its path."""
    file = home.folder / name
    file.write_text(text)
    return file


def test_the_tables_are_printed_and_no_secret_is_in_them(home: Home) -> None:
    printed = home.run("import", str(write_recipe(home))).stdout
    assert tomllib.loads(printed)["service"]["tiny"] == {
        "engine": "vllm", "model": "example/Tiny-7B", "image": "registry.example/vllm:1", "port": 8000, "context": 4096,
        "served_name": "example/Tiny-7B", "speculation": "off",
    }  # fmt: skip
    assert "# not carried over: --host 0.0.0.0: " in printed
    assert "# not carried over: the secret HF_TOKEN: " in printed
    assert "hf_abc" not in printed


def test_a_script_and_a_recipe_become_services_of_one_file(home: Home) -> None:
    script = write_recipe(home, "run.sh", "#!/bin/sh\nPORT=9000\nllama-server -m /m/small.gguf --port $PORT\n")
    output = home.folder / "made.toml"
    said = home.run("import", str(write_recipe(home)), str(script), "--output", str(output)).stdout
    services = read_config(output).services
    assert [(wish.engine, wish.port) for wish in services.values()] == [("vllm", 8000), ("llamacpp", 9000)]
    assert said == f"Added {', '.join(services)} to {output}.\n"


def test_a_file_is_added_to_and_stays_what_it_was(home: Home) -> None:
    home.configure('# mine\n[service.mine]\nmodel = "/m/x.gguf"')
    before = home.paths.config.read_text()
    home.run("import", str(write_recipe(home)), "--output", str(home.paths.config))
    assert home.paths.config.read_text().startswith(before)
    assert set(read_config(home.paths.config).services) == {"mine", "tiny"}


@pytest.mark.parametrize("to_config", [False, True])
def test_a_service_that_exists_is_never_overwritten(home: Home, to_config: bool) -> None:
    home.configure('[service.tiny]\nmodel = "/m/x.gguf"')
    before = home.paths.config.read_text()
    more = ("--output", str(home.paths.config)) if to_config else ()
    done = home.run("import", str(write_recipe(home)), *more, code=1)
    assert "has a service called `tiny` already" in done.stderr
    assert "--output" in done.stderr
    assert done.stdout == ""
    assert home.paths.config.read_text() == before
    home.run("import", str(write_recipe(home)), "--output", str(home.folder / "other.toml"))


def test_json_holds_the_services_and_their_text(home: Home) -> None:
    told = home.json("import", str(write_recipe(home)))
    [service] = told["services"]
    assert (service["name"], service["keys"]["port"], service["line"]) == ("tiny", 8000, 6)
    assert service["source"].endswith("tiny.yaml")
    assert set(tomllib.loads(told["toml"])["service"]) == {"tiny"}
    assert told["written_to"] is None


@pytest.mark.parametrize(
    ("name", "text", "code", "says"),
    [
        ("list.yaml", "registries: [{name: a}]", 1, "lists where recipes lie"),
        ("broken.yaml", "a: [", 1, "is not valid YAML"),
        ("other.yaml", "a: 1", 2, "is YAML of no kind that is known here"),
        ("windows.yaml", "schema_version: 4\nhardware: x\nserve: {}\nplatform: {os: windows}", 3, "is written for Windows"),
        ("binary.sh", "a\0b", 2, "larger than 4 MiB, or no text"),
    ],
)
def test_what_holds_no_launch_is_told(home: Home, name: str, text: str, code: int, says: str) -> None:
    done = home.run("import", str(write_recipe(home, name, text)), code=code)
    assert says in done.stderr
    assert done.stdout == ""


def test_a_file_that_cannot_be_read_or_added_to_is_wrong_use(home: Home) -> None:
    assert "No such file" in home.run("import", str(home.folder / "gone.yaml"), code=2).stderr
    assert "Is a directory" in home.run("import", str(home.folder), code=2).stderr
    broken = write_recipe(home, "broken.toml", "service = 1\n")
    assert "broken.toml" in home.run("import", str(write_recipe(home)), "--output", str(broken), code=2).stderr
    assert broken.read_text() == "service = 1\n"
    (home.folder / "file").write_text("")
    nowhere = home.folder / "file" / "made.toml"
    assert "Not a directory" in home.run("import", str(write_recipe(home)), "--output", str(nowhere), code=2).stderr
    deep = home.folder / "new" / "made.toml"
    home.run("import", str(write_recipe(home)), "--output", str(deep))
    assert "[service.tiny]" in deep.read_text()


def test_a_fault_is_json_too_where_json_was_asked_for(home: Home) -> None:
    done = home.run("import", str(write_recipe(home, "broken.yaml", "a: [")), "--json", code=1)
    assert json.loads(done.stdout)["fault"]["what"].endswith("broken.yaml is not valid YAML")
