"""What `stoker diagnose` prints, of files, of what is piped in, of a service's log, and of what is none."""

from __future__ import annotations

import json
from pathlib import Path

from home import Home

VLLM = "(APIServer pid=101) INFO 11-20 08:03:39 [utils.py:233] non-default args: {'model': '/models/m'}\n"
FAULT = "OSError: [Errno 98] Address already in use\n"
SGLANG = (
    "/sgl/python/sglang/launch_server.py: note\nlaunch_server.py: error: unrecognized arguments: --enable-auto-tool-choice\n"
)


def write(folder: Path, text: str) -> str:
    file = folder / "engine.log"
    file.write_text(text)
    return str(file)


def test_a_log_file_is_told_of_with_its_lines_and_the_fix(home: Home, tmp_path: Path) -> None:
    said = home.run("diagnose", write(tmp_path, VLLM + FAULT)).stdout
    assert "1. certain: The engine's port is taken by another program" in said
    assert "     2  OSError: [Errno 98] Address already in use" in said
    assert "fix:" in said
    assert "port-taken" in said


def test_what_is_piped_in_is_read_as_json(home: Home) -> None:
    told = json.loads(home.run("diagnose", "-", "--json", input=VLLM + FAULT).stdout)
    assert [(one["rule"], one["confidence"]) for one in told["findings"]] == [("port-taken", "certain")]
    assert told["findings"][0]["evidence"] == [{"line": 2, "text": FAULT.strip()}]
    assert {"title", "cause", "fix", "sources"} <= told["findings"][0].keys()
    assert (told["noise"], told["unknown"]) == ([], [])


def test_with_the_launch_at_hand_the_mended_command_is_told(home: Home, tmp_path: Path) -> None:
    launch = "python3 -m sglang.launch_server --model-path /m --enable-auto-tool-choice --api-key s3cr3tvalue"
    said = home.run("diagnose", write(tmp_path, SGLANG), "--context", launch).stdout
    command = said.partition("run: ")[2].replace("\\\n", "").split()
    assert command[:5] == ["python3", "-m", "sglang.launch_server", "--model-path", "/m"]
    assert "--enable-auto-tool-choice" not in command
    assert "s3cr3tvalue" not in said


def test_what_nobody_knows_is_said_to_be_unknown(home: Home, tmp_path: Path) -> None:
    said = home.run("diagnose", write(tmp_path, VLLM + "WibbleError: the frobnicator is askew\n")).stdout
    assert "I don't know" in said
    assert "     2  WibbleError: the frobnicator is askew" in said
    assert "What would help:" in said


def test_the_log_of_a_service_is_found_by_its_name(home: Home) -> None:
    log = home.paths.engine_log("coder")
    log.parent.mkdir(parents=True)
    log.write_text(VLLM + FAULT)
    assert "port-taken" in home.run("diagnose", "coder").stdout
    assert "port-taken" in home.run("diagnose").stdout


def test_what_is_neither_a_service_nor_a_file_is_refused(home: Home) -> None:
    done = home.run("diagnose", "nobody", code=2)
    assert "neither a service with a log here nor a file" in done.stderr
    done = home.run("diagnose", "--container", "nobody-has-this-one", code=2)
    assert "there is no container called" in done.stderr
