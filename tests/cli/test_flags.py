"""`stoker flags`: versions, the flags of one, and what two of them changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from home import Home
from real_tools import OwnPodman

ENGINE = """#!{python}
import sys
if "--version" in sys.argv:
    print("version: 11549 (abc)")
else:
    print("-c,    --ctx-size N                     how much (default: 0)")
    print("--brand-new                             of this build alone")
"""


def test_without_a_version_those_that_are_known_are_listed(home: Home) -> None:
    assert home.run("flags", "sglang").stdout.startswith("sglang: 0.5.9, 0.5.12, ")
    assert home.json("flags", "llamacpp") == {"engine": "llamacpp", "versions": ["b11549"]}


def test_one_version_prints_its_flags(home: Home) -> None:
    lines = home.run("flags", "vllm", "0.26.0").stdout.splitlines()
    assert lines[0].startswith("vllm 0.26.0: 2")
    [line] = [line for line in lines if line.startswith("--gpu-memory-utilization ")]
    assert line.endswith("float; default 0.92")
    [line] = [line for line in lines if line.startswith("--max-num-scheduled-tokens ")]
    assert line.endswith("since 0.26.0")


def test_a_version_in_between_is_answered_by_the_one_before_and_says_so(home: Home) -> None:
    printed = home.run("flags", "sglang", "0.5.17", "--search", "attention-backend").stdout
    assert printed.startswith("sglang 0.5.17 is judged by the flags of 0.5.16")
    assert "and 14 more" in printed, "only some of the values are shown"


def test_the_search_finds_words_and_values(home: Home) -> None:
    found = home.json("flags", "sglang", "0.5.23", "--search", "triton_sparse_mla")
    assert [one["flag"]["name"] for one in found["flags"]] == ["--dsa-prefill-backend"]
    assert found["flags"][0]["since"] == "0.5.14"
    newest = home.json("flags", "vllm", "--search", "speculative-config")
    assert newest["version"] == "0.33.0"
    assert "none match" in home.run("flags", "vllm", "--search", "nothing like it").stdout


def test_two_versions_print_what_is_different(home: Home) -> None:
    printed = home.run("flags", "sglang", "0.5.12", "0.5.23").stdout
    assert printed.startswith("sglang 0.5.12 -> 0.5.23\n")
    for line in (
        "  --nsa-prefill-backend -> --dsa-prefill-backend  (sglang 0.5.18 says so)",
        "  --encoder-transfer-backend: zmq_to_scheduler -> auto",
        "  --disable-cuda-graph: use --cuda-graph-backend-{decode,prefill}=disabled",
        "  --ep-dispatch-algorithm: now only static, dynamic, fake, lp",
    ):
        assert line in printed.splitlines()
    assert "nothing is different" in home.run("flags", "vllm", "0.33.0", "0.33.0").stdout


def test_the_difference_can_be_searched_and_read_by_programs(home: Home) -> None:
    found = home.json("flags", "vllm", "0.30.0", "0.33.0", "--search", "allowed-origins")
    assert found["defaults"] == [{"name": "--allowed-origins", "before": '["*"]', "after": "[]"}]
    assert (found["added"], found["removed"]) == ([], [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tgi",), "choose one of: llamacpp, sglang, vllm"),
        (("tgi", "1.0"), "choose one of: llamacpp, sglang, vllm"),
        (("vllm", "0.1.0"), "0.20.2, 0.24.0"),
        (("vllm", "../sglang/0.5.9"), "0.20.2, 0.24.0"),
        (("vllm", "0.26.0", "latest"), "unknown (latest)"),
        (("vllm", "0.20.2", "0.24.0", "0.26.0"), "not more"),
        (("vllm", "0.20.2", "0.24.0", "--server", "python3"), "not more"),
        ((), "[OPTIONS]"),
    ],
)
def test_what_is_not_known_is_wrong_use_with_what_is(home: Home, words: tuple[str, ...], says: str) -> None:
    assert says in home.run("flags", *words, code=2).stderr


def test_an_engine_that_is_installed_is_asked_itself(home: Home, tmp_path: Path) -> None:
    server = tmp_path / "llama-server"
    server.write_text(ENGINE.format(python=sys.executable))
    server.chmod(0o755)
    found = home.json("flags", "llamacpp", "--server", str(server))
    assert [one["flag"]["name"] for one in found["flags"]] == ["--brand-new", "--ctx-size"]
    assert found["version"] == "11549"
    changes = home.json("flags", "llamacpp", "b11549", "--server", str(server))
    assert [one["name"] for one in changes["added"]] == ["--brand-new"]


IN_IMAGE = """echo 'options:'
echo '  --gpu-memory-utilization N   share'
echo '  --max-model-len N            context'
echo '  --brand-new N                of this image alone'
"""
VLLM = ('ENTRYPOINT ["vllm", "serve"]', "ENV VLLM_VERSION=0.31.7")


def test_the_engine_in_an_image_is_asked_itself(home: Home, podman: OwnPodman) -> None:
    podman.make_image("localhost/ours:1", {"vllm": IN_IMAGE}, *VLLM)
    home.environment |= podman.environment
    changes = home.json("flags", "vllm", "0.33.0", "--image", "localhost/ours:1")
    assert [one["name"] for one in changes["added"]] == ["--brand-new"]
    podman("rmi", "localhost/ours:1")
    podman.make_image("localhost/ours:1", {"vllm": IN_IMAGE.replace("brand-new", "newer-still")}, *VLLM)
    found = home.json("flags", "vllm", "--image", "localhost/ours:1")
    assert "--newer-still" in [one["flag"]["name"] for one in found["flags"]], "the name is the same, the digest is not"
    assert found["version"] == "0.31.7"


def test_an_image_that_is_not_here_or_prints_no_flags_is_said(home: Home, podman: OwnPodman) -> None:
    podman.make_image("localhost/ours:1", {"vllm": "exit 1"}, *VLLM)
    home.environment |= podman.environment
    assert "docker pull no/such" in home.run("flags", "vllm", "--image", "no/such", code=2).stderr
    said = home.run("flags", "vllm", "--image", "localhost/ours:1", code=1).stderr
    assert "--entrypoint vllm localhost/ours:1 serve --help=all` did not print the flags" in said


def test_a_program_that_prints_no_flags_is_a_finding(home: Home) -> None:
    done = home.run("flags", "sglang", "--server", "/nonexistent/python", code=1)
    assert "`/nonexistent/python -m sglang.launch_server --help` did not print" in done.stderr
    done = home.run("flags", "vllm", "--server", "/nonexistent/bin/python3", code=1)
    assert "`/nonexistent/bin/vllm serve --help=all` did not print" in done.stderr


def test_a_minor_version_is_the_newest_of_it_that_is_known(home: Home) -> None:
    for written in ("0.20", "v0.20"):
        printed = home.run("flags", "vllm", written, "--search", "max-model-len").stdout
        assert f"vllm {written} is taken for 0.20.2" in printed
    refused = home.run("flags", "vllm", "0." + "9" * 5000, code=2)
    assert "Traceback" not in refused.stderr
