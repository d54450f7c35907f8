"""`stoker plan --render` and `stoker lint --fix`: what they print is safe to copy, and does what it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import checkpoints
from home import Home
from stoker.errors import Refused
from stoker.flows.rendering import find_owner
from stoker.plan.written.docker_options import read_options
from support import fails
from systemd_syntax import exec_argv

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "max_position_embeddings": 131072,
}  # fmt: skip
IMAGE = "vllm/vllm-openai:v0.26.0"
WEIGHTS: dict[str, tuple[str, tuple[int, ...]]] = {"model.layers.0.w": ("BF16", (1000, 1000))}


def write_model(folder: Path) -> Path:
    """Writes a small model into a folder."""
    beside: dict[str, Any] = {"tokenizer__json": checkpoints.tokenizer()}
    return checkpoints.write_checkpoint(folder, WEIGHTS, CONFIG, **beside)


def in_bash(text: str, folder: Path) -> list[str]:
    """Returns the words that bash gives to the program of a command; fails where it ran anything else."""
    listing = folder / "listing"
    listing.mkdir()
    for program in ("docker", "podman", "vllm"):
        (listing / program).write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
        (listing / program).chmod(0o755)
    before = set(folder.rglob("*"))
    environment = {"PATH": f"{listing}:{os.environ['PATH']}", "HOME": "/home/of-test"}
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert set(folder.rglob("*")) == before, text
    assert done.stderr == "", text
    shutil.rmtree(listing)
    return done.stdout.split("\0")[:-1]


def docker_words(home: Home, *words: str) -> tuple[str, ...]:
    """Returns the words of `docker run` that a plan prints, as bash reads them."""
    return tuple(in_bash(home.run("plan", *words, "--on", "gb10", "--render", "docker").stdout, home.folder)[1:])


def value_of(words: tuple[str, ...], flag: str) -> str:
    """Returns the value of a flag that is given once."""
    assert words.count(flag) == 1
    return words[words.index(flag) + 1]


NAMES = [
    "$(touch PWNED; echo x)",
    "`touch PWNED`",
    "a;touch PWNED",
    "a'$(touch PWNED)'b",
    'a"$(touch PWNED)"b',
    "$HOME",
    "a\nb",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_models_name_is_never_carried_out(home: Home, name: str) -> None:
    folder = write_model(home.folder / "models" / name)
    home.configure(f'[service.v]\nmodel = {json.dumps(str(folder))}\nengine = "vllm"\nprogram = ["vllm", "serve"]\n')
    said = home.run("plan", "v", "--on", "gb10", "--render", "argv").stdout
    assert in_bash(said, home.folder)[:2] == ["serve", str(folder)]


@pytest.mark.parametrize("word", NAMES)
def test_a_flags_value_is_the_same_text_in_every_form(home: Home, word: str) -> None:
    folder = write_model(home.folder / "tiny")
    table = f'[service.v]\nmodel = "{folder}"\nimage = "{IMAGE}"\nflags = {{ chat-template = {json.dumps(word)} }}\n'
    home.configure(table)
    words = docker_words(home, "v")
    assert value_of(words, "--chat-template") == word
    [service] = yaml.safe_load(home.run("plan", "v", "--on", "gb10", "--render", "compose").stdout)["services"].values()
    command = [one.replace("$$", "$") for one in service["command"]]
    assert tuple(command) == words[words.index(IMAGE) + 1 :]
    podman = in_bash(home.run("plan", "v", "--on", "gb10", "--render", "podman").stdout, home.folder)
    assert podman[-len(command) :] == command


COMMAND = """docker run -d --gpus all --network host --ipc host --restart unless-stopped \\
  -v {models}/tiny:/model -v {models}/eagle:/eagle -v hf_cache:/root/.cache/huggingface \\
  lmsysorg/sglang:v0.5.12 python -m sglang.launch_server --model-path /model --tokenizer-path /model --host 0.0.0.0 \\
  --port 30001 --attention-backend triton --mem-fraction-static 0.5 --context-length 4096 \\
  --speculative-algorithm EAGLE --speculative-draft-model-path /eagle --speculative-eagle-topk 1 \\
  --speculative-num-draft-tokens 4 --speculative-num-steps 3
"""


def test_an_imported_docker_command_becomes_a_docker_command_that_does_the_same(home: Home) -> None:
    models = home.folder / "models"
    write_model(models / "tiny")
    write_model(models / "eagle")
    script = home.folder / "run.sh"
    script.write_text(COMMAND.format(models=models))
    home.run("import", str(script), "--output", str(home.paths.config))
    words = docker_words(home, "model")
    options = read_options(words)
    assert options.options["mount"] == (
        f"type=bind,source={models}/tiny,target=/model,readonly",
        f"type=bind,source={models}/eagle,target=/draft,readonly",
        "type=volume,source=hf_cache,target=/root/.cache/huggingface",
    )
    assert value_of(words, "--model-path") == value_of(words, "--tokenizer-path") == "/model"
    assert value_of(words, "--speculative-draft-model-path") == "/draft"
    assert (value_of(words, "--port"), value_of(words, "--publish")) == ("30001", "127.0.0.1:30001:30001")
    assert value_of(words, "--speculative-num-steps") == "3"


def test_a_model_of_the_hubs_cache_is_mounted_with_what_its_links_lead_to(home: Home) -> None:
    repository = home.folder / "hub" / "models--org--tiny"
    snapshot = repository / "snapshots" / "0123abc"
    write_model(snapshot)
    (repository / "blobs").mkdir()
    for number, file in enumerate(sorted(snapshot.iterdir())):
        file.rename(repository / "blobs" / f"b{number}")
        file.symlink_to(f"../../blobs/b{number}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0123abc")
    home.environment["HF_HUB_CACHE"] = str(repository.parent)
    words = docker_words(home, "org/tiny", "--engine", "vllm", "--image", IMAGE)
    mount = dict(part.partition("=")[::2] for part in value_of(words, "--mount").split(","))
    assert (mount["source"], "readonly" in mount) == (str(repository), True)
    seen = words[words.index("serve") + 1]
    assert seen == f"{mount['target']}/snapshots/0123abc"
    outside = Path(seen.replace(mount["target"], mount["source"], 1))
    assert all(file.resolve().is_relative_to(repository) and file.exists() for file in outside.iterdir())


def test_a_unit_of_an_image_runs_the_image_and_plain_words_are_refused_for_it(home: Home) -> None:
    words = (
        "plan",
        str(write_model(home.folder / "tiny")),
        "--on",
        "gb10",
        "--engine",
        "vllm",
        "--image",
        IMAGE,
        "--render",
    )
    unit = home.run(*words, "unit").stdout
    argv = exec_argv(unit)
    assert argv[1:3] == ["run", "--rm"]
    assert IMAGE in argv
    assert exec_argv(unit, "ExecStop")[1] == "stop"
    refused = home.run(*words, "argv", code=3)
    assert "--render docker" in refused.stderr
    assert refused.stdout == ""


def test_an_engine_of_roots_own_is_refused_and_the_one_who_called_sudo_is_asked() -> None:
    me, nobody = os.getuid(), "nobody"
    with fails(Refused, "should not run as root", "--render unit"):
        find_owner(0, {})
    with fails(Refused, "should not run as root"):
        find_owner(0, {"SUDO_USER": "root"})
    with fails(Refused, "there is no user no-such-user"):
        find_owner(0, {"SUDO_USER": "no-such-user"})
    with fails(Refused, "there is no user 2147480000"):
        find_owner(2147480000, {})
    assert find_owner(0, {"SUDO_USER": nobody}) == nobody
    assert me == 0 or find_owner(me, {"SUDO_USER": "root"}) != "root"


@pytest.mark.parametrize("form", ["argv", "docker", "compose", "unit"])
def test_a_secret_is_in_no_form(home: Home, form: str) -> None:
    folder = write_model(home.folder / "tiny")
    where = 'program = ["/opt/vllm", "serve"]' if form == "argv" else f'image = "{IMAGE}"'
    table = f'[service.v]\nmodel = "{folder}"\nengine = "vllm"\n{where}\nenvironment = {{ HF_TOKEN = "hush-hush" }}\n'
    home.configure(table)
    done = home.run("plan", "v", "--on", "gb10", "--render", form, code=3)
    assert "would show a secret: HF_TOKEN" in done.stderr
    assert "hush-hush" not in done.stdout + done.stderr
    shown = home.run("plan", "v", "--on", "gb10").stdout
    assert "$HF_TOKEN=***" in shown
    assert "hush-hush" not in shown


UNIT = """[Service]
MemoryMax=100G
ExecStart=/opt/venv/bin/vllm serve org/some-model --host 0.0.0.0 --port ${PORT} --served-model-name '$$(touch PWNED)'
"""
COMPOSE = """services:
  llm:
    image: vllm/vllm-openai:v0.26.0
    command: [--model, org/some-model, --served-model-name, "$$(touch PWNED)", --port, "${PORT}"]
    network_mode: host
    restart: always
"""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [("llm.service", UNIT, "This does what ExecStart of"), ("compose.yaml", COMPOSE, "This does what the service llm of")],
)
def test_a_mended_command_says_what_it_is_instead_of_and_what_is_left(home: Home, name: str, text: str, says: str) -> None:
    file = home.folder / name
    file.write_text(text)
    said = home.run("lint", "--on", "gb10", "--fix", str(file), code=None).stdout
    comments = [line for line in said.splitlines() if line.startswith("# ")]
    assert says in comments[0]
    assert any("Not mended" in line and "- rule " in line for line in comments)
    assert ("systemd-memorymax" in said) == (name == "llm.service")
    words = in_bash(said.replace("/opt/venv/bin/vllm", "vllm"), home.folder)
    assert value_of(tuple(words), "--served-model-name") == "$(touch PWNED)"
    assert value_of(tuple(words), "--port") == ""  # the variable stayed one, and is not set here


def test_a_mended_script_keeps_open_what_was_open_and_closed_what_was_closed(home: Home) -> None:
    script = home.folder / "run.sh"
    script.write_text(
        'docker run --rm --restart always -v ~/.cache:/c vllm/vllm-openai:v0.26.0 --model "$HOME/m" '
        "--served-model-name '$(touch PWNED)' --chat-template \"$(echo t)\"\n"
    )
    words = tuple(in_bash(home.run("lint", "--on", "gb10", "--fix", str(script), code=None).stdout, home.folder))
    assert value_of(words, "--volume") == "/home/of-test/.cache:/c"
    assert value_of(words, "--model") == "/home/of-test/m"
    assert value_of(words, "--served-model-name") == "$(touch PWNED)"
    assert value_of(words, "--chat-template") == "t"


@pytest.mark.parametrize("verb", ["lint", "import"])
def test_what_is_no_ordinary_file_is_refused_at_once(home: Home, verb: str) -> None:
    fifo = home.folder / "pipe.sh"
    os.mkfifo(fifo)
    for path in (str(fifo), "/dev/zero"):
        assert "is a pipe or a device" in home.run(verb, path, code=2).stderr
    assert "cannot be read" in home.run(verb, "/proc/self/mem/x", code=2).stderr
    if verb == "import":
        script = home.folder / "run.sh"
        script.write_text("vllm serve org/m")
        assert "is a pipe or a device" in home.run(verb, str(script), "--output", str(fifo), code=2).stderr
