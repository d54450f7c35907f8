"""What `stoker timeline` tells: of kept starts, of log files, and of files that are none."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from home import Home
from stoker.records import GIB, SavedService, Service, Setting, Stage, StageName, Start, State, Timeline
from stoker.store.services import ServiceStore
from stoker.store.timelines import TimelineStore
from support import DEMO, make_plan

LOGS = Path(__file__).parents[1] / "engines" / "logs"


def make_timeline(stages: dict[StageName, float], total_s: float, **changes: Any) -> Timeline:
    told = tuple(Stage(name, 0.0, took_s, f"a line about {name}") for name, took_s in stages.items())
    unexplained_s = round(total_s - sum(stages.values()), 3)
    return Timeline(
        "vllm", "0.24.0", 1.79e9, is_ready=True, total_s=total_s, unexplained_s=unexplained_s, stages=told, **changes
    )


def keep(home: Home, *timelines: Timeline, plan_id: str = "p1", service: str = "small") -> None:
    home.paths.state.mkdir(parents=True, exist_ok=True)
    with closing(TimelineStore(home.paths.database)) as store:
        for timeline in timelines:
            store.write(Start(service, plan_id, timeline))


def keep_plan(home: Home, *settings: Setting, **changes: Any) -> None:
    with closing(ServiceStore(home.paths.database)) as store:
        plan = make_plan(*settings, **changes)
        store.write(SavedService(plan, Service(State.STOPPED, 5.0, "you asked for it")))


FIRST = make_timeline({"import": 20.0, "weights": 600.0, "compile": 60.0}, 690.0)
SECOND = make_timeline({"import": 20.5, "weights": 300.0, "graphs": 13.0}, 340.0)


def test_a_start_stands_beside_the_one_before(home: Home) -> None:
    keep(home, FIRST, SECOND)
    lines = home.run("timeline", "small").stdout.splitlines()
    assert "ready after 5 min 40 s; 11 min 30 s the time before" in lines[0]
    cells = {words[0]: " ".join(words[1:]) for line in lines if (words := line.split())}
    assert cells["weights"].startswith("5 min 0 s 10 min 0 s -5 min 0 s ███")
    assert cells["import"].startswith("20.5 s 20.0 s +0.50 s █")
    assert cells["compile"] == "- 1 min 0 s -"
    assert cells["graphs"].startswith("13.0 s - - █")
    assert "slowest: weights, 5 min 0 s, 88% of the start" in lines
    assert "a line about weights" in "\n".join(lines)


def test_without_a_name_the_service_that_started_last_is_told(home: Home) -> None:
    keep(home, FIRST, service="one")
    keep(home, SECOND, service="two")
    view = home.json("timeline")
    assert (view["last"]["total_s"], view["before"]) == (340.0, None)


def test_the_json_has_rows_with_differences(home: Home) -> None:
    keep(home, FIRST, SECOND)
    view = home.json("timeline", "small")
    rows = {row["name"]: (row["took_s"], row["before_s"], row["difference_s"]) for row in view["rows"]}
    assert rows == {
        "import": (20.5, 20.0, 0.5), "weights": (300.0, 600.0, -300.0), "graphs": (13.0, None, None),
        "compile": (None, 60.0, None), "not explained": (6.5, 10.0, -3.5),
    }  # fmt: skip
    assert view["slowest"] == "weights"


def test_time_that_no_line_explains_is_named_as_such(home: Home) -> None:
    keep(home, make_timeline({"import": 2.0}, 60.0))
    said = home.run("timeline").stdout
    assert "slowest: not explained, 58.0 s, 97% of the start" in said
    assert "No line of the log says what was done" in said


@pytest.mark.parametrize(("setting", "advised"), [("--load-format", True), ("--weight-loader-disable-mmap", False)])
def test_the_launch_that_a_service_has_decides_what_is_advised(home: Home, setting: str, advised: bool) -> None:
    keep(home, msgspec.structs.replace(make_timeline({"weights": 90.0}, 100.0), engine="sglang"))
    keep_plan(home, Setting(setting, True, "you"), engine="sglang")
    rules = [finding["rule"] for finding in home.json("timeline")["advice"]]
    assert ("sglang-loading-readers" in rules) is advised


def test_another_plan_than_the_starts_own_says_nothing_of_it(home: Home) -> None:
    keep(home, make_timeline({"connect": 90.0}, 100.0), plan_id="older")
    keep_plan(home, Setting("$VLLM_SKIP_P2P_CHECK", "1", "you"), engine="vllm")
    assert [finding["rule"] for finding in home.json("timeline")["advice"]] == ["vllm-p2p-check-minute"]
    keep(home, make_timeline({"connect": 90.0}, 100.0), plan_id="p1")
    assert home.json("timeline")["advice"] == []


def test_what_took_no_time_is_not_worth_advice(home: Home) -> None:
    keep(home, make_timeline({"compile": 0.4}, 0.5))
    assert home.json("timeline")["advice"] == []


def test_the_loading_is_told_as_a_rate_and_beside_the_disk(home: Home) -> None:
    model = home.folder / "model" / "m.gguf"
    model.parent.mkdir()
    model.write_bytes(os.urandom(80 * 1024**2))
    stages = (Stage("weights", 0.0, 660.0, "line", bytes=66 * GIB, read_s=606.0),)
    keep(home, msgspec.structs.replace(FIRST, stages=stages))
    keep_plan(home, engine="vllm", model_path=str(model))
    loading = home.json("timeline")["loading"]
    assert (loading["took_s"], loading["disk_share"]) == (606.0, None)
    assert loading["bytes_per_s"] == pytest.approx(66 * GIB / 606)
    assert "weights: 66.0 GiB in 10 min 6 s, 112 MiB/s\n" in home.run("timeline").stdout
    measured = home.json("timeline", "--measure")["loading"]
    assert measured["disk_share"] == pytest.approx(measured["bytes_per_s"] / measured["disk_bytes_per_s"], abs=0.001)
    assert "of what the disk can" in home.run("timeline", "--measure").stdout


def test_without_any_start_it_says_so(home: Home) -> None:
    assert "no start has been kept yet" in home.run("timeline", code=2).stderr
    keep(home, FIRST)
    assert "kept are: small" in home.run("timeline", "smal", code=2).stderr


@pytest.mark.parametrize("log", sorted(LOGS.glob("*-h200-plain.log")), ids=lambda log: log.stem)
def test_a_log_of_another_machine_is_read(home: Home, log: Path) -> None:
    said = home.run("timeline", "--log", str(log)).stdout
    assert said.startswith(log.name.split("-")[0])
    assert "what came before is not counted" in said
    view = home.json("timeline", "--log", str(log))
    assert view["last"]["is_ready"]
    assert view["slowest"] in {"warm-up", "graphs"}


def test_the_22_minutes_of_autotuning_are_named_with_the_flag_that_ends_them(home: Home) -> None:
    log = home.folder / "vllm.log"
    log.write_text(
        "(APIServer pid=1) INFO 03-25 09:58:00 [api_utils.py:345]  █ version 0.20.2\n"
        "(EngineCore pid=7) INFO 03-25 10:00:01 [monitor.py:53] torch.compile took 1.00 s in total\n"
        "[AutoTuner]: Tuning trtllm_fp4_block_scale_moe: 100%|##| 22/22 [22:04<00:00, 60.2s/profile]\n"
        "(EngineCore pid=7) INFO 03-25 10:22:06 [x.py:747] Graph capturing finished in 0 secs, took 0.07 GiB\n"
        "INFO:     Application startup complete.\n"
    )
    said = home.run("timeline", "--log", str(log)).stdout
    assert "slowest: autotune, 22 min 4 s" in said
    assert "Say --no-enable-flashinfer-autotune." in said
    assert "vllm-flashinfer-autotune-22min" in said


def test_advice_names_the_flags_that_this_version_does_not_have(home: Home) -> None:
    log = home.folder / "llama.log"
    log.write_text(
        "0.00.007.990 I srv          init: build_info: b11549-abc1234\n"
        "0.00.010.000 I srv    load_model: loading model '/m/a.gguf'\n"
        "1.44.010.000 I cmn          init: llama threadpool init, n_threads = 1\n"
        "1.44.020.000 I srv          init: listening on http://127.0.0.1:8080\n"
    )
    [finding] = home.json("timeline", "--log", str(log))["advice"]
    assert finding["rule"] == "llamacpp-mmap-slow"
    assert finding["fix"].startswith("Use --load-mode none")
    assert finding["fix"].endswith("llamacpp 11549 has no --no-mmap.")


def test_a_start_that_failed_shows_how_far_it_came(home: Home) -> None:
    log = home.folder / "cut.log"
    log.write_text("".join((LOGS / "sglang-0.5.16-h200-plain.log").read_text().splitlines(keepends=True)[:18]))
    said = home.run("timeline", "--log", str(log)).stdout
    assert "never said that it is ready" in said
    assert "weights" in said


def write_binary(file: Path) -> None:
    file.write_bytes(DEMO.read_bytes()[:5000])


def write_other(file: Path) -> None:
    file.write_text("127.0.0.1 localhost\n")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda file: None, "No such file"),
        (Path.mkdir, "Is a directory"),
        (os.mkfifo, "is a pipe or a device"),
        (write_binary, "is not an engine's log"),
        (write_other, "is not known to be an engine's log"),
        (Path.touch, "is not known to be an engine's log"),
    ],
    ids=["missing", "folder", "pipe", "binary", "other", "empty"],
)
def test_what_is_no_log_is_refused_with_the_reason(home: Home, make: Any, says: str) -> None:
    file = home.folder / "x.log"
    make(file)
    assert says in home.run("timeline", "--log", str(file), code=2).stderr


def test_a_named_engine_is_believed_and_a_wrong_one_finds_nothing(home: Home) -> None:
    log = str(LOGS / "vllm-0.26.0-h200-plain.log")
    assert home.json("timeline", "--log", log, "--engine", "vllm")["last"]["engine"] == "vllm"
    assert "tells of no start of llamacpp" in home.run("timeline", "--log", log, "--engine", "llamacpp", code=1).stderr
    assert "there is no engine called `tgi`" in home.run("timeline", "--log", log, "--engine", "tgi", code=2).stderr


@pytest.mark.parametrize("words", [("small", "--log", "x"), ("--engine", "vllm"), ("--log", "x", "--measure")])
def test_words_that_do_not_go_together_are_wrong_use(home: Home, words: tuple[str, ...]) -> None:
    assert "[OPTIONS]" in home.run("timeline", *words, code=2).stderr


def test_a_real_llamacpp_start_is_read_from_its_own_log(demo: Home) -> None:
    log = str(demo.paths.engine_log("demo"))
    last = demo.json("timeline", "--log", log)["last"]
    assert (last["engine"], last["is_ready"]) == ("llamacpp", True)
    stages = {stage["name"]: stage["took_s"] for stage in last["stages"]}
    assert {"import", "weights", "other"} <= stages.keys()
    assert 0 < stages["weights"] <= last["total_s"]
    assert sum(stages.values()) + last["unexplained_s"] == pytest.approx(last["total_s"], abs=0.01)
    assert "ready after" in demo.run("timeline", "--log", log).stdout
