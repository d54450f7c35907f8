"""What an engine's start was made of: from our own logs of real engines, and from what goes wrong with logs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from home import wait_for
from stoker.engines import find
from stoker.facts.machine.ports import pick_free_port
from stoker.records import GIB, MIB, Stage, Timeline
from stoker.supervise.logs import EngineLog
from stoker.supervise.starts.timeline import Heard, TimelineWatch, read_timeline, recognise
from support import DEMO

EMBEDDED = (sys.executable, "-P", "-m", "stoker.embedded")
LOGS = Path(__file__).parents[1] / "engines" / "logs"
DAY = 1_795_132_800.0  # 2026-11-20 00:00 UTC
NEARLY = 0.03  # clocks of whole seconds beside durations in hundredths


def read_log(name: str) -> Timeline:
    texts = (LOGS / f"{name}.log").read_text().split("\n")
    return read_timeline(find(name.split("-")[0]), [(None, text) for text in texts])


def read_texts(engine: str, *texts: str, begun_at: float | None = None, ready_at: float | None = None) -> Timeline:
    return read_timeline(find(engine), [(None, text) for text in texts], begun_at, ready_at)


def took(timeline: Timeline) -> dict[str, float | None]:
    return {stage.name: stage.took_s for stage in timeline.stages}


def stage_of(timeline: Timeline, name: str) -> Stage:
    return next(stage for stage in timeline.stages if stage.name == name)


@pytest.mark.parametrize(
    ("name", "version", "total_s", "stages"),
    [
        (
            "vllm-0.26.0-h200-plain", "0.26.0", 131,
            # The log: 9.01 s compiling, 2.09 s loading, 89.64 s of `init engine`, of which what is not compiled is warm-up.
            {"import": 32, "connect": 0, "weights": 2.09, "warm-up": 80, "compile": 9.01, "autotune": 0.01, "graphs": 0,
             "other": 7},
        ),
        ("vllm-0.32.0-cpu-ngram", "0.32.0", 42,
         {"import": 18, "connect": 0, "weights": 1, "warm-up": 1.05, "compile": 21, "other": 1}),
        ("vllm-0.32.0-cpu-draft-model", "0.32.0", 35,
         {"import": 11, "connect": 0, "weights": 2, "warm-up": 6.04, "compile": 16, "other": 0}),
        ("vllm-0.32.0-cpu-two-nodes-rank0", "0.32.0", 15,
         {"import": 10, "connect": 0, "weights": 0, "warm-up": 3.27, "other": 0}),
        ("sglang-0.5.16-h200-plain", None, 69,
         {"import": 15.79, "connect": 0.21, "weights": 0.12, "other": 0, "graphs": 42.73 + 2.09, "warm-up": 5.91}),
        ("sglang-0.5.16-h200-standalone", None, 30,
         {"import": 16.81, "connect": 0.19, "weights": 0.08, "other": 1, "graphs": 7.21, "warm-up": 2}),
        ("sglang-0.5.16-h200-ngram", None, 28,
         {"import": 15.82, "connect": 0.18, "weights": 0.07, "other": 4.82, "graphs": 2.98, "warm-up": 2}),
    ],
)  # fmt: skip
def test_a_real_start_is_read(name: str, version: str | None, total_s: float, stages: dict[str, float]) -> None:
    timeline = read_log(name)
    assert (timeline.version, timeline.is_ready, timeline.total_s) == (version, True, total_s)
    assert took(timeline) == pytest.approx(stages, abs=0.06)
    assert timeline.unexplained_s == pytest.approx(total_s - sum(stages.values()), abs=0.1)


def test_the_line_that_a_stage_was_read_from_is_told() -> None:
    timeline = read_log("vllm-0.26.0-h200-plain")
    assert stage_of(timeline, "compile").line.endswith("torch.compile took 9.01 s in total")
    assert "Model loading took 0.01 GiB" in stage_of(timeline, "weights").line


def test_a_worker_of_another_machine_never_says_that_it_is_ready() -> None:
    timeline = read_log("vllm-0.32.0-cpu-two-nodes-rank1")
    assert (timeline.is_ready, timeline.total_s, timeline.unexplained_s) == (False, None, None)
    assert stage_of(timeline, "connect").took_s == 4


def test_what_is_read_and_how_long_that_took_are_told_apart_from_the_stage() -> None:
    weights = stage_of(
        read_texts(
            "vllm",
            "INFO 06-02 00:51:12 [model_runner.py:284] Loading model from scratch...",
            "INFO 06-02 00:51:39 [default_loader.py:397] Loading weights took 26.93 seconds",
            "INFO 06-02 00:51:45 [model_runner.py:295] Model loading took 7.64 GiB and 32.969258 seconds",
        ),
        "weights",
    )
    assert weights.took_s == pytest.approx(32.97, abs=NEARLY)
    assert (weights.read_s, weights.bytes) == (26.93, int(7.64 * GIB))


def test_each_rank_reads_its_part_at_the_same_time() -> None:
    weights = stage_of(
        read_texts(
            "sglang",
            "[2026-11-20 07:00:10 TP0] Load weight begin. avail mem=100 GB",
            "[2026-11-20 07:00:10 TP1] Load weight begin. avail mem=100 GB",
            "[2026-11-20 07:00:40 TP1] Load weight end. type=A, avail mem=60 GB, mem usage=40.00 GB.",
            "[2026-11-20 07:00:50 TP0] Load weight end. type=A, avail mem=60 GB, mem usage=40.50 GB.",
        ),
        "weights",
    )
    assert (weights.took_s, weights.bytes) == (40, 40 * GIB + int(40.5 * GIB))


def test_a_draft_head_that_is_read_from_the_same_files_does_not_count_twice() -> None:
    line = "(Worker pid=1) INFO 11-20 07:28:57 [weight_utils.py:1108] Checkpoint size: 30.00 GiB. Available"
    other = line.replace("pid=1", "pid=2")
    loading = "(Worker pid=1) INFO 11-20 07:28:50 [x.py:1] Starting to load model a..."
    assert stage_of(read_texts("vllm", loading, line, line, other), "weights").bytes == 30 * GIB


def test_llamacpp_states_the_bytes_where_it_speaks_freely() -> None:
    lines = (
        "0.00.010.000 I srv    load_model: loading model '/m/a.gguf'",
        "0.00.020.000 I print_info: file size   = 358.78 MiB (5.05 BPW)",
        "0.02.010.000 I llama_context: constructing llama_context",
        "0.02.500.000 W common_init_from_params: warming up the model with an empty run - please wait ...",
        "0.03.000.000 I srv          init: initializing slots, n_slots = 4",
        "0.03.100.000 I main: model loaded",
        "0.03.100.500 I main: server is listening on http://127.0.0.1:8080 - starting the main loop",
    )
    timeline = read_texts("llamacpp", *lines)
    assert took(timeline) == {"import": 0, "weights": 2.0, "warm-up": 0.5, "other": 0.1}
    assert stage_of(timeline, "weights").bytes == int(358.78 * MIB)


def test_autotuning_is_known_by_its_progress_bar_alone() -> None:
    timeline = read_texts(
        "vllm",
        "(EngineCore pid=7) INFO 03-25 10:00:00 [backends.py:1] Available KV cache memory: 10 GiB",
        "(EngineCore pid=7) INFO 03-25 10:00:01 [monitor.py:53] torch.compile took 1.00 s in total",
        "[AutoTuner]: Tuning trtllm_fp4_block_scale_moe:  50%|#####     | 11/22 [11:00<11:00, 60.0s/profile]",
        "\r".join(f"[AutoTuner]: Tuning trtllm_fp4_block_scale_moe: {done:3}%|#| 22/22 [22:04<00:00, 60.2s/profile]"
                  for done in (95, 100)),
        "(EngineCore pid=7) INFO 03-25 10:22:06 [model_runner.py:747] Graph capturing finished in 0 secs, took 0.07 GiB",
        "INFO:     Application startup complete.",
    )  # fmt: skip
    assert stage_of(timeline, "autotune").took_s == 22 * 60 + 4
    assert timeline.total_s == 22 * 60 + 6


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("INFO 02-18 04:51:47 monitor.py:31] torch.compile takes 5.96 s in total", 5.96),
        ("INFO 02-18 04:51:47 [monitor.py:53] torch.compile and initial profiling run took 5.90 s in total", 5.9),
        ("INFO 02-18 04:51:47 [x.py:1] Directly load the compiled graph(s) from the cache, took 4.495 s", 4.495),
        ("INFO 02-18 04:51:47 backends.py:321] Compiling a graph for general shape takes 0.34 s", 0.34),
    ],
)  # fmt: skip
def test_other_wordings_of_vllm_are_understood(line: str, seconds: float) -> None:
    assert took(read_texts("vllm", "INFO 02-18 04:51:00 [x.py:1] hello", line))["compile"] == seconds


@pytest.mark.parametrize("word", ["cuda", "draft cuda", "piecewise CUDA"])
def test_other_wordings_of_sglang_are_understood(word: str) -> None:
    end = f"[2025-09-05 20:48:29 TP0] Capture {word} graph end. Time elapsed: 12.11 s. mem usage=0.54 GB."
    assert took(read_texts("sglang", "[2025-09-05 20:48:00 TP0] hello", end)) == {"graphs": 12.11}


def test_a_stage_whose_end_is_missing_has_no_length() -> None:
    timeline = read_texts(
        "sglang",
        "[2026-11-20 07:00:00] Init torch distributed begin.",
        "[2026-11-20 07:00:02] Load weight begin. avail mem=100 GB",
        "[2026-11-20 07:09:00] The server is fired up and ready to roll!",
    )
    assert took(timeline) == {"import": 0, "connect": None, "weights": None}
    assert (timeline.total_s, timeline.unexplained_s) == (540, 540)


def test_an_end_without_its_begin_says_nothing() -> None:
    assert read_texts("sglang", "[2026-11-20 07:00:00] Memory pool end. avail mem=97.23 GB").stages == ()


def test_colours_and_prefixes_of_other_programs_do_not_hide_a_line() -> None:
    plain = read_texts(
        "sglang", "[2026-11-20 07:00:01] a", "[2026-11-20 07:00:09] Load weight end. elapsed=3.50 s, mem usage=1.00 GB."
    )
    coloured = read_texts(
        "sglang", "\x1b[32m[2026-11-20 07:00:01]\x1b[0m a",
        "engine-1  | \x1b[1;33m[2026-11-20 07:00:09]\x1b[0m Load weight end. elapsed=3.50 s, mem usage=1.00 GB.\r",
    )  # fmt: skip
    assert took(plain) == took(coloured) == {"weights": 3.5, "other": None}


def test_only_the_last_start_in_a_log_counts_and_only_until_it_is_ready() -> None:
    texts = [(LOGS / f"vllm-{name}.log").read_text() for name in ("0.32.0-cpu-ngram", "0.26.0-h200-plain")]
    both = "\n".join(texts).split("\n")
    late = "(EngineCore pid=683) INFO 11-20 09:00:00 [monitor.py:53] torch.compile took 600 s in total"
    assert read_texts("vllm", *both, late) == read_log("vllm-0.26.0-h200-plain")


def test_a_clock_that_counts_from_the_start_begins_anew_with_the_next_start() -> None:
    start = [
        "0.00.001.000 I srv          init: initializing ...",
        "0.00.010.000 I srv    load_model: loading model '/m/a.gguf'",
        "0.{0}.000.000 I cmn          init: llama threadpool init, n_threads = 1",
        "0.{0}.001.000 I srv          init: listening on http://127.0.0.1:1",
    ]
    timeline = read_texts("llamacpp", *(line.format("09") for line in start), *(line.format("02") for line in start))
    assert (timeline.total_s, took(timeline)["weights"]) == (2.0, 1.99)


@pytest.mark.parametrize("begun_at", [None, DAY + 41 * 86400 + 86390.0])
def test_midnight_and_new_year_are_stepped_over(begun_at: float | None) -> None:
    timeline = read_texts(
        "vllm",
        "INFO 12-31 23:59:50 [x.py:1] non-default args: {}",
        "(Worker_TP0 pid=3) INFO 12-31 23:59:58 [gpu.py:1] Starting to load model a...",
        "(Worker_TP1 pid=4) INFO 01-01 00:00:00 [gpu.py:1] Starting to load model a...",
        "(Worker_TP0 pid=3) INFO 12-31 23:59:59 [gpu.py:1] hello from a slower pipe",
        "(Worker_TP0 pid=3) INFO 01-01 00:00:08 [gpu.py:1] Model loading took 1.0 GiB and 10.0 seconds",
        "INFO 01-01 00:00:10 Application startup complete.",
        begun_at=begun_at,
    )
    assert (timeline.total_s, took(timeline)["weights"]) == (20, 10)


def test_the_29th_of_february_is_a_day() -> None:
    timeline = read_texts(
        "vllm", "INFO 02-28 23:59:59 [x.py:1] non-default args: {}", "INFO 02-29 00:00:01 [x.py:1] Warming up done.",
        "INFO 03-01 00:00:01 Application startup complete.",
    )  # fmt: skip
    assert timeline.total_s == 2 + 86400


@pytest.mark.parametrize("zone_s", [0, 3600, -18000, 20700])
def test_arrivals_and_a_log_in_another_time_zone_tell_one_story(zone_s: float) -> None:
    begun_at = DAY + 8 * 3600 + 3 * 60 + 30 - zone_s
    texts = (LOGS / "vllm-0.26.0-h200-plain.log").read_text().split("\n")
    alone = read_log("vllm-0.26.0-h200-plain")
    heard: list[Heard] = [(begun_at + 140 + 0.4, text) for text in texts]
    timeline = read_timeline(find("vllm"), heard, begun_at, begun_at + 142)
    assert timeline.total_s == 142
    differing = {"import": took(alone)["import"], "first token": None}
    assert {**took(timeline), **differing} == {**took(alone), **differing}
    assert took(timeline)["import"] == 9 + 32  # the program began 9 s before its first line
    assert took(timeline)["first token"] == pytest.approx(142 - 140.4, abs=0.01)


def test_lines_without_a_time_of_their_own_have_that_of_their_arrival() -> None:
    heard: list[Heard] = [
        (DAY + 1.0, "main: loading model"),
        (DAY + 1.0, "srv    load_model: loading model '/m/a.gguf'"),
        (DAY + 9.5, "common_init_from_params: warming up the model with an empty run - please wait ..."),
        (DAY + 10.0, "srv          init: initializing slots, n_slots = 4"),
        (DAY + 10.5, "main: model loaded"),
        (DAY + 10.5, "main: server is listening on http://127.0.0.1:8080 - starting the main loop"),
    ]
    timeline = read_timeline(find("llamacpp"), heard, DAY, DAY + 12)
    assert took(timeline) == {"import": 1, "weights": 8.5, "warm-up": 0.5, "other": 0.5, "first token": 1.5}
    assert (timeline.total_s, timeline.unexplained_s) == (12, 0)


def test_the_gate_is_a_stage_of_its_own_after_the_first_answer() -> None:
    heard: list[Heard] = [
        (DAY + 1.0, "main: loading model"),
        (DAY + 10.0, "srv          init: initializing slots, n_slots = 4"),
        (DAY + 10.5, "main: model loaded"),
        (DAY + 10.5, "main: server is listening on http://127.0.0.1:8080 - starting the main loop"),
    ]
    timeline = read_timeline(find("llamacpp"), heard, DAY, ready_at=DAY + 17, proved_at=DAY + 12)
    assert (took(timeline)["first token"], took(timeline)["gate"]) == (1.5, 5)
    assert next(stage.begin_s for stage in timeline.stages if stage.name == "gate") == 12
    assert timeline.total_s == 17


def test_a_log_without_any_time_tells_only_what_its_lines_state() -> None:
    timeline = read_texts(
        "sglang", "Load weight begin. avail mem=1 GB", "Load weight end. elapsed=3.50 s, mem usage=1.00 GB.",
        "Capture cuda graph begin.", "Capture cuda graph end.", "The server is fired up and ready to roll!",
    )  # fmt: skip
    assert took(timeline) == {"weights": 3.5, "other": None, "graphs": None}
    assert (timeline.is_ready, timeline.total_s, timeline.unexplained_s) == (True, None, None)
    assert all(stage.begin_s is None for stage in timeline.stages)


def test_nothing_gives_an_empty_timeline() -> None:
    assert read_texts("vllm") == Timeline("vllm", None, None, is_ready=False, total_s=None, unexplained_s=None, stages=())


@pytest.mark.parametrize("nonsense", ["9" * 400, "1.2.3", ".", "\u0663.\u0665"])
def test_numbers_that_are_none_are_not_believed(nonsense: str) -> None:
    line = f"[2026-11-20 07:00:01] Load weight end. elapsed={nonsense} s, mem usage={nonsense} GB."
    timeline = read_texts(
        "sglang", "[2026-11-20 07:00:00] hello", line, "[2026-11-20 07:00:02] The server is fired up and ready to roll"
    )
    assert timeline.total_s == 2
    assert all(stage.took_s is None or stage.took_s <= 2 for stage in timeline.stages)


def test_a_watch_hears_what_a_reader_reads() -> None:
    texts = (LOGS / "sglang-0.5.16-h200-plain.log").read_text().split("\n")
    begun_at = DAY + 7 * 3600 + 43 * 60 + 30
    watch = TimelineWatch(find("sglang"), begun_at)
    for number in range(0, len(texts), 7):
        watch.add(texts[number : number + 7], begun_at + 80)
    timeline = watch.finish(begun_at + 81)
    assert timeline == read_timeline(find("sglang"), [(begun_at + 80, text) for text in texts], begun_at, begun_at + 81)
    assert took(timeline)["graphs"] == pytest.approx(44.82)


def test_a_watch_keeps_only_what_tells_something() -> None:
    watch = TimelineWatch(find("vllm"), DAY)
    watch.add([f"INFO 11-20 00:00:01 [x.py:1] chatter {number}" for number in range(1000)], DAY + 1)
    assert watch._heard == []


def test_a_start_that_failed_has_no_total() -> None:
    watch = TimelineWatch(find("vllm"), DAY)
    watch.add(["INFO 11-20 00:00:09 [core.py:1] Initializing a V1 LLM engine (v0.26.0) with config"], DAY + 9)
    assert watch.finish(None).total_s is None
    assert took(watch.finish(None)) == {"import": 9}


def test_a_real_server_is_heard_while_it_starts(tmp_path: Path) -> None:
    file = tmp_path / "engine.log"
    port = pick_free_port("127.0.0.1")
    words = ("--model", str(DEMO), "--alias", "x", "--host", "127.0.0.1", "--port", str(port), "--ctx-size", "256")
    log, begun_at = EngineLog(file, 2**20), time.time()
    watch = TimelineWatch(find("llamacpp"), begun_at)
    log.on_lines = lambda lines: watch.add(lines, time.time())
    with file.open("wb") as out, subprocess.Popen((*EMBEDDED, *words, "--parallel", "1"), stdout=out, stderr=out) as server:
        wait_for("the server", lambda: any("listening on http" in line for line in log.tail(50)))
        ready_at = time.time()
        server.terminate()
    timeline = watch.finish(ready_at)
    assert timeline.total_s == pytest.approx(ready_at - begun_at, abs=0.001)
    stages = took(timeline)
    assert {"import", "weights", "other", "first token"} <= stages.keys()
    assert (stages["import"] or 0) > 0
    assert (stages["weights"] or 0) > 0
    assert sum(value or 0 for value in stages.values()) + (timeline.unexplained_s or 0) == pytest.approx(
        timeline.total_s, abs=0.01
    )


def test_the_tail_of_an_earlier_life_is_not_the_start() -> None:
    whole = (LOGS / "vllm-0.26.0-h200-plain.log").read_text().split("\n")
    ready = next(number for number, line in enumerate(whole) if "Application startup complete" in line)
    assert read_texts("vllm", *whole[ready:], *whole) == read_log("vllm-0.26.0-h200-plain")


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.log")), ids=lambda log: log.stem)
def test_an_engine_is_recognised_by_its_log(log: Path) -> None:
    without_a_start = any(word in log.name for word in ("error", "missing", "killed"))
    assert recognise(log.read_text()) == (None if without_a_start else log.name.split("-")[0])


def test_another_web_servers_log_is_nobodys() -> None:
    assert recognise("INFO:     Started server process [1]\nINFO:     Application startup complete.\n") is None
