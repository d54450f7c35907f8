"""`stoker plan`, `stoker lint` and `stoker rules` as people and programs use them."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import checkpoints
from home import Home
from real_tools import OwnPodman, need

CONFIG = {
    "architectures": ["Mistral4ForCausalLM"], "model_type": "mistral4", "hidden_size": 4096, "num_hidden_layers": 4,
    "num_attention_heads": 32, "num_key_value_heads": 32, "kv_lora_rank": 256, "q_lora_rank": 1024, "qk_rope_head_dim": 64,
    "n_routed_experts": 8, "num_experts_per_tok": 4, "vocab_size": 131072, "max_position_embeddings": 1048576,
    "quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
}  # fmt: skip
IMAGE = "lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a"


@pytest.fixture(scope="session")
def mistral(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sparse folder of four layers and eight experts under the name of the real release."""
    folder = tmp_path_factory.mktemp("models") / "Mistral-Small-4-119B-2603-NVFP4"
    beside: dict[str, Any] = {
        "tokenizer__json": checkpoints.tokenizer(),
        "tokenizer_config__json": {"chat_template": "{{ tools }}"},
    }
    return checkpoints.write_checkpoint(folder, checkpoints.mistral_4(4, 8), CONFIG, shards=3, **beside)


def test_a_plan_shows_flags_with_reasons_memory_and_what_others_measured(home: Home, mistral: Path) -> None:
    said = home.run("plan", str(mistral), "--on", "gb10", "--image", IMAGE, "--alternatives").stdout
    for part in (
        "--attention-backend triton",
        "fits a gb10",
        "full contexts",
        "what others measured",
        "35 to 41",
    ):
        assert part in said


def test_an_explained_plan_shows_the_evidence_of_each_rule(home: Home, mistral: Path) -> None:
    said = home.run("plan", str(mistral), "--on", "gb10", "--image", IMAGE, "--explain").stdout
    assert "sglang-attn-flashinfer-invalid-device-function: reported" in said
    assert "https://sovgrid.org/" in said
    assert "how it was counted" in said


def test_a_plan_is_json_for_programs(home: Home, mistral: Path) -> None:
    report = home.json("plan", str(mistral), "--on", "gb10", "--engine", "vllm", "--version", "0.26.0")
    assert report["plan"]["engine"] == "vllm"
    assert all(setting["because"] for setting in report["plan"]["settings"])
    assert report["budget"]["fits_machine"] is True
    assert sum(line["need_bytes"] for line in report["budget"]["lines"]) == report["budget"]["total_bytes"]


def test_a_plan_that_does_not_fit_is_refused_and_says_by_how_much(home: Home, tmp_path: Path) -> None:
    big = checkpoints.write_checkpoint(
        tmp_path / "big", {"w": ("BF16", (100_000, 1_000_000))}, CONFIG, tokenizer__json=checkpoints.tokenizer()
    )
    done = home.run("plan", str(big), "--on", "gb10-64", "--engine", "sglang", code=3)
    assert "does not fit this machine" in done.stdout
    assert "budget-does-not-fit" in done.stdout
    home.run("plan", str(big), "--on", "gb10-64", "--engine", "sglang", "--image", IMAGE, "--render", "docker", code=3)


@pytest.mark.parametrize("form", ["docker", "podman"])
def test_a_container_command_is_one_that_lint_finds_nothing_forbidden_in(home: Home, mistral: Path, form: str) -> None:
    said = home.run("plan", str(mistral), "--on", "gb10", "--image", IMAGE, "--render", form).stdout
    assert "--publish 127.0.0.1:30000:30000" in said
    script = home.folder / "start.sh"
    script.write_text(said)
    done = home.run("lint", "--on", "gb10", "--json", str(script), code=None)
    assert done.returncode < 3, done.stdout
    [linted] = json.loads(done.stdout)
    assert linted["recipe"]["engine"] == "sglang"
    assert linted["recipe"]["model"] == "/model"


def test_the_other_forms_are_what_their_readers_read(home: Home, mistral: Path) -> None:
    words = ("plan", str(mistral), "--on", "gb10", "--image", IMAGE, "--render")
    [service] = yaml.safe_load(home.run(*words, "compose").stdout)["services"].values()
    assert service["image"] == IMAGE
    assert service["ports"] == ["127.0.0.1:30000:30000"]
    assert f"Image=docker.io/{IMAGE}" in home.run(*words, "quadlet").stdout
    home.configure(f'[service.v]\nmodel = "{mistral}"\nengine = "vllm"\nprogram = ["{sys.executable}", "-m", "vllm"]\n')
    home.environment["SUDO_USER"] = "nobody"  # root has no engine of its own
    unit = home.run("plan", "v", "--on", "gb10", "--render", "unit").stdout
    assert "ExecStart=" in unit
    assert "vllm" in unit
    assert "MemoryMax" not in "".join(line for line in unit.splitlines() if not line.startswith("#"))
    assert "-m vllm" in home.run("plan", "v", "--on", "gb10", "--render", "argv").stdout


def test_the_gemma_image_of_may_gets_an_overlay_of_one_commit(home: Home, tmp_path: Path) -> None:
    config = {**CONFIG, "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4"}
    folder = checkpoints.write_checkpoint(
        tmp_path / "gemma-4-26B-A4B-it-FP8-Dynamic", {"w": ("BF16", (1000, 1000))}, config,
        tokenizer__json=checkpoints.tokenizer(), tokenizer_config__json={"chat_template": "{{ tools }}"},
    )  # fmt: skip
    home.configure(f"""[service.gemma]
model = "{folder}"
image = "vllm/vllm-openai:gemma4-0505-cu130"
flags = {{ speculative-config = '{{"method":"gemma4_mtp","model":"google/x","num_speculative_tokens":4}}' }}
""")
    said = home.run("plan", "gemma", "--on", "gb10", "--render", "dockerfile").stdout
    assert "FROM vllm/vllm-openai:gemma4-0505-cu130" in said
    assert "6341c15f9f7addccdff9984259a426f06a9779e6" in said
    assert "gemma4-mtp-pr41745" in said
    done = home.run(
        "plan", str(folder), "--on", "gb10", "--image", "vllm/vllm-openai:v0.26.0", "--render", "dockerfile", code=2
    )
    assert "no rule asks for another image" in done.stderr


def test_a_box_that_does_not_exist_is_wrong_use_with_those_that_do(home: Home, mistral: Path) -> None:
    done = home.run("plan", str(mistral), "--on", "gb11", code=2)
    assert "there is no machine called `gb11`" in done.stderr
    assert "gb10-64" in done.stderr


def test_a_machine_may_be_a_file_that_facts_wrote(home: Home, mistral: Path) -> None:
    file = home.folder / "box.json"
    facts = home.run("facts", "--json").stdout
    file.write_text(facts)
    done = home.run("plan", str(mistral), "--on", str(file), "--engine", "vllm", code=None)
    assert "--max-model-len" in done.stdout


def test_a_hub_name_that_was_never_fetched_says_how_to_fetch_it(home: Home) -> None:
    done = home.run("plan", "org/never-fetched", "--on", "gb10", code=3)
    assert "there is no model org/never-fetched" in done.stderr


def test_contradicting_wishes_are_refused(home: Home, mistral: Path) -> None:
    home.configure(f'[service.a]\nmodel = "{mistral}"\nspeculation = "off"\ndraft = "{mistral}"\n')
    assert "would be ignored" in home.run("plan", "a", "--on", "gb10", code=3).stderr
    home.run("plan", "a", "--on", "gb10", "--engine", "nonsense", code=2)


SMALL = "context = 1024\nparallel = 1\nflags = { max-num-batched-tokens = 512 }\n"


def test_an_image_that_is_not_here_is_said_before_anything_starts(home: Home, mistral: Path) -> None:
    need("podman")
    home.configure(f'[service.v]\nmodel = "{mistral}"\nimage = "vllm/vllm-openai:v0.26.0"\n{SMALL}')
    done = home.run("up", "v", code=3)
    assert "the image vllm/vllm-openai:v0.26.0 is not on this machine" in done.stderr
    assert "`stoker fetch v` pulls it" in done.stderr


def test_an_engine_that_is_not_installed_is_said_before_anything_starts(home: Home, mistral: Path) -> None:
    home.configure(f'[service.v]\nmodel = "{mistral}"\nengine = "vllm"\nprogram = ["no-such-vllm"]\n{SMALL}')
    done = home.run("up", "v", code=3)
    assert "vllm is not installed here" in done.stderr
    assert "no-such-vllm" in done.stderr
    home.environment["SUDO_USER"] = "nobody"
    assert "whole path" in home.run("plan", "v", "--render", "unit", code=3).stderr


def test_lint_says_what_is_wrong_and_prints_the_mended_command(home: Home) -> None:
    words = ("docker", "run", "--rm", "--restart", "always", "vllm/vllm-openai:v0.26.0", "--model", "org/some-model")
    done = home.run("lint", "--on", "gb10", "--", *words, code=3)
    assert "docker-rm-restart-hard-error" in done.stdout
    mended = home.run("lint", "--on", "gb10", "--fix", "--", *words, code=3).stdout
    assert "--rm" not in mended
    assert "--model org/some-model" in mended


def test_lint_reads_several_files_and_tells_the_worst(home: Home, tmp_path: Path) -> None:
    cases = Path(__file__).parents[1] / "plan" / "lint_cases"
    clean, bad = tmp_path / "clean.sh", cases / "sudoers-wildcard"
    plain, _, _ = (cases / "sglang-clean.sh").read_text().partition(" \\\n  --speculative-algorithm")  # it has its own notes
    clean.write_text(f"{plain} --sleep-on-idle\n")
    assert "nothing is known against it" in home.run("lint", "--on", "gb10", str(clean)).stdout
    assert "sudoers-wildcard-systemctl" in home.run("lint", "--on", "gb10", str(clean), str(bad), code=3).stdout


def test_rules_are_listed_searched_and_shown(home: Home) -> None:
    assert "sglang-attn-triton-required" in home.run("rules").stdout
    assert "sglang-attn-triton-required" in home.run("rules", "--search", "triton attention").stdout
    said = home.run("rules", "sglang-attn-triton-required").stdout
    assert "https://sovgrid.org/" in said
    assert home.json("rules", "sglang-attn-triton-required")["severity"] == "crash"
    assert "did you mean" in home.run("rules", "sglang-attn-triton-requierd", code=2).stderr
    assert "Neither a rule nor a page nor a note speaks of that" in home.run("rules", "--search", "xyzzy").stdout


def test_every_answer_to_the_reports_exists() -> None:
    docs = Path(__file__).parents[2] / "docs"
    tree = tomllib.loads((docs / "answers.toml").read_text())
    assert len(tree["report"]) == 5
    page = (docs / "answers.md").read_text()
    for report in tree["report"]:
        for item in report["item"]:
            assert item["by"]
            assert item["what"] in page


def test_secrets_are_shown_by_no_form_of_a_plan(home: Home, mistral: Path) -> None:
    home.configure(
        f'[service.s]\nmodel = "{mistral}"\nimage = "{IMAGE}"\nenvironment = {{ HF_TOKEN = "hf_abcdefghijklmnopqrst" }}\n'
    )
    for words in ((), ("--explain",), ("--json",)):
        done = home.run("plan", "s", "--on", "gb10", *words)
        assert "hf_abcdefghijklmnopqrst" not in done.stdout + done.stderr
        assert "HF_TOKEN" in done.stdout


@pytest.mark.parametrize(("said", "tokens"), [("8192", 8192), ("8k", 8000), ("8K", 8192)])
def test_a_context_may_be_said_in_thousands(home: Home, mistral: Path, said: str, tokens: int) -> None:
    report = home.json("plan", str(mistral), "--on", "gb10", "--engine", "vllm", "--context", said)
    assert {"--max-model-len": tokens}.items() <= {one["name"]: one["value"] for one in report["plan"]["settings"]}.items()


@pytest.mark.parametrize("said", ["many", "-1", "8kk", "9" * 40])
def test_a_context_that_is_no_number_is_wrong_use_with_what_is_taken(home: Home, mistral: Path, said: str) -> None:
    assert "32K (32,768)" in home.run("plan", str(mistral), "--on", "gb10", f"--context={said}", code=2).stderr


OWN_FLAGS = "echo 'options:'\n" + "".join(
    f"echo '  --{name} X   what it is'\n"
    for name in ("brand-new", "gpu-memory-utilization", "max-model-len", "max-num-seqs", "served-model-name", "host", "port")
)


@pytest.mark.parametrize(("flag", "code"), [("brand-new", None), ("brand-newer", 3)])
def test_flags_of_an_image_without_a_known_version_are_those_that_it_prints(
    home: Home, mistral: Path, podman: OwnPodman, flag: str, code: int | None
) -> None:
    podman.make_image("localhost/ours:nightly", {"vllm": OWN_FLAGS}, 'ENTRYPOINT ["vllm", "serve"]')
    home.environment |= podman.environment
    home.configure(
        f'[service.v]\nmodel = "{mistral}"\nengine = "vllm"\nimage = "localhost/ours:nightly"\n'
        f'context = 1024\nparallel = 1\nflags = {{ {flag} = "7" }}\n'
    )
    done = home.run("plan", "v", code=code)
    assert f"--{flag} 7" in done.stdout
    assert ("write --brand-new: it is spelled most like it" in done.stdout) == (flag == "brand-newer")
