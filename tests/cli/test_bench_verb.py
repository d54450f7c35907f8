"""`stoker bench` as a person meets it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from benchmarks.bench_accuracy.serving import call, truth_server
from benchmarks.bench_accuracy.truth_server import MODEL

from bad_endpoint import bad_endpoint, says, whole
from bench_server import bench_server, refuses
from home import Home

FAST = {"ttft_ms": 5.0, "step_ms": 1.0}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server that knows the truth."""
    with truth_server() as url:
        call(f"{url}/truth/schedule", FAST)
        yield url


def words(url: str, *more: str) -> tuple[str, ...]:
    """Returns what measures this server."""
    return ("bench", "--url", url, "--model", MODEL, "--tg", "8", "--runs", "3", *more)


def test_a_grid_is_one_command_and_one_table(home: Home, server: str) -> None:
    said = home.run(*words(server, "--pp", "128", "256", "--depth", "0", "128", "--concurrency", "1", "2")).stdout
    lines = said.splitlines()
    assert lines[0] == f"{MODEL} at {server}/v1, 8 cells"
    [head] = [place for place, line in enumerate(lines) if line.startswith("pp ")]
    assert lines[head].split() == [
        "pp", "tg", "depth", "load", "TTFT", "prefill", "t/s", "ms/token", "decode", "t/s", "each", "e2e", "t/s", "all",
        "accept", "runs",
    ]  # fmt: skip
    rows = [line.split()[:4] for line in lines[head + 1 : head + 9]]
    assert rows == [
        [pp, "8", depth, load] for depth in ("0", "128") for pp in ("128", "256") for load in ("c1", "c2")
    ]  # fmt: skip
    assert "tokens counted by usage; times are the kernel's" in said
    assert not home.daemon_answers


def test_a_log_shows_which_cell_of_how_many_is_measured_and_how_long_the_rest_takes(home: Home, server: str) -> None:
    done = home.run(*words(server, "--pp", "128", "256"))
    first, second = (line for line in done.stderr.splitlines() if "is measured" in line)
    assert first == "1/2  pp128 tg8, c1: is measured"
    assert second.startswith("2/2  pp256 tg8, c1: is measured; about ") and second.endswith(" left")
    assert "is measured" not in home.run(*words(server, "--json")).stderr


def test_several_texts_are_one_command_with_a_column_for_them(home: Home, server: str) -> None:
    said = home.run(*words(server, "--pp", "128", "--content", "code", "--content", "chat")).stdout
    [head] = [place for place, line in enumerate(said.splitlines()) if line.startswith("text")]
    assert [line.split()[:3] for line in said.splitlines()[head + 1 : head + 3]] == [
        ["code", "128", "8"],
        ["chat", "128", "8"],
    ]


def test_a_soak_is_shown_stretch_by_stretch(home: Home, server: str) -> None:
    lines = home.run(*words(server, "--pp", "128", "--soak", "3s")).stdout.splitlines()
    [head] = [place for place, line in enumerate(lines) if line.startswith("from ")]
    assert "tokens a step" in lines[head]
    assert [line.split()[:2] for line in lines[head + 1 : head + 3]] == [["0", "s"], ["1", "s"]]


def test_json_has_every_request_and_on_demand_every_write(home: Home, server: str) -> None:
    run = json.loads(home.run(*words(server, "--pp", "128", "--json")).stdout)
    assert (run["tool"], run["is_whole"], run["subject"]["model"]) == ("stoker", True, MODEL)
    [cell] = run["cells"]
    assert [len(repeat["requests"]) for repeat in cell["repeats"]] == [1, 1, 1]
    assert cell["repeats"][0]["requests"][0]["writes"] == []
    assert run["words"][0] == "bench"
    again = json.loads(home.run(*words(server, "--pp", "128", "--json", "--writes")).stdout)
    writes = again["cells"][0]["repeats"][0]["requests"][0]["writes"]
    assert sum(one["tokens"] for one in writes) == 8


def test_limits_make_a_column_and_a_sweep_has_its_knee(home: Home, server: str) -> None:
    said = home.run(*words(server, "--pp", "128", "--concurrency", "1", "2", "4", "--slo", "ttft=10s,itl=1s")).stdout
    assert "good" in said
    assert "100 %" in said
    assert "knee     pp128 tg8, c" in said


def test_a_failure_ends_with_one_and_is_shown(home: Home) -> None:
    with bench_server(tokens=8, always=refuses(429, "slow down")) as server:
        done = home.run("bench", "--url", server.url, "--model", "m", "--pp", "64", "--tg", "8", "--runs", "2", code=1)
    assert "HTTP 429: slow down" in done.stdout
    assert "2 of 2 requests failed" in done.stdout


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        (("--rate", "2", "--concurrency", "2"), 2, "--rate and --concurrency exclude each other"),
        (("--slo", "soon"), 2, "is no list of limits"),
        (("--precision", "7"), 2, "is no share"),
        (("--content", "/nowhere/at/all"), 2, "cannot be read"),
        (("--trace", "/nowhere/at/all"), 2, "trace"),
        (("--tokenizer", "/nowhere/at/all"), 2, "tokenizer"),
        (("--pp", "131072"), 3, "do not fit into its context"),
        (("service",), 2, "name a service, or --url"),
        (("--direct",), 2, "name a service, or --url"),
    ],
)  # fmt: skip
def test_wrong_use_is_told_before_anything_is_measured(
    home: Home, server: str, more: tuple[str, ...], code: int, says: str
) -> None:
    done = home.run("bench", "--url", server, "--model", MODEL, *more, code=code)
    assert says in done.stderr


def test_the_only_model_of_an_address_needs_no_name(home: Home, server: str) -> None:
    said = home.run("bench", "--url", server, "--pp", "128", "--tg", "8", "--runs", "1").stdout
    assert said.startswith(f"{MODEL} at {server}/v1, 1 cell\n")


@pytest.mark.parametrize(
    ("listed", "says_why"),
    [(b'{"data": [{"id": "b"}, {"id": "a"}]}', "it serves a, b"), (b"[]", "lists none"), (b"{", "lists none")],
)
def test_one_of_several_models_has_to_be_named(home: Home, listed: bytes, says_why: str) -> None:
    with bad_endpoint(says(whole(listed))) as url:
        said = home.run("bench", "--url", url, code=3).stderr
    assert "name the model with --model" in said
    assert says_why in said


def test_without_a_daemon_there_is_no_service(home: Home) -> None:
    assert "the daemon is not running" in home.run("bench", code=3).stderr
    assert "the daemon is not running" in home.run("bench", "measure", "list", code=3).stderr


def test_a_trace_is_one_cell(home: Home, server: str) -> None:
    file = home.folder / "trace.jsonl"
    file.write_text(
        '{"at_s": 0, "prompt_tokens": 100, "new_tokens": 4}\n{"at_s": 0.02, "prompt_tokens": 140, "new_tokens": 6}\n'
    )
    run = json.loads(home.run(*words(server, "--trace", str(file), "--json")).stdout)
    requests = run["cells"][0]["repeats"][0]["requests"]
    assert [(one["prompt_tokens"], one["output_tokens"]) for one in requests] == [(100, 4), (140, 6)]


def test_ctrl_c_keeps_what_was_measured(home: Home, server: str) -> None:
    call(f"{server}/truth/schedule", FAST)  # which forgets what others asked
    argv = [sys.executable, "-m", "stoker", *words(server, "--pp", "128", "256"), "--runs", "1000"]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        while sum(one["tokens"] == 8 for one in call(f"{server}/truth/requests")) < 10:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said, complaint = process.communicate(timeout=60)
    assert process.returncode == 1, complaint
    assert "interrupted: what was measured until then is above" in said
    assert "pp" in said
    assert "Traceback" not in complaint


def test_help_shows_the_options_and_the_commands(home: Home) -> None:
    said = home.run("bench", "--help").stdout
    assert "--concurrency N..." in said
    assert "measure" in said
    assert "--pp" in home.run("bench", "measure", "--help").stdout
