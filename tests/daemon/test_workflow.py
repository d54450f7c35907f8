"""`stoker run`: steps with the service that each needs, resumed where they stopped; real programs, the real engine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from home import Home, wait_for
from stoker.box import is_running
from stoker.config import demo_model
from stoker.records import State

QUICK = "switch_cooldown_s = 0"
# What a person's script does: it asks the model that the step names, at the address and with the key of its environment.
ASK = """
import json, os, sys, urllib.request
body = {"model": os.environ["STOKER_MODEL"], "max_tokens": 16, "temperature": 0,
        "messages": [{"role": "user", "content": "Who are you?"}]}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
    {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"})
with urllib.request.urlopen(request) as reply:
    text = json.load(reply)["choices"][0]["message"]["content"]
open(sys.argv[1], "w").write(text)
print("wrote", len(text), "letters")
"""
FETCH = """
import os, sys, urllib.request
page = urllib.request.urlopen(os.environ["STOKER_SERVICE_URL"] + "/").read()
open(sys.argv[1], "wb").write(page)
"""


def words(*command: str) -> str:
    """Returns a command as TOML writes it."""
    return json.dumps(list(command))


def python(code: str, *more: str) -> str:
    """Returns a Python program as a step's command."""
    return words(sys.executable, "-c", code, *more)


def step(workflow: str, name: str, **keys: str) -> str:
    """Returns a step's table; the values are TOML."""
    lines = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[[workflow.{workflow}.step]]\nname = "{name}"\n{lines}'


def tts(folder: Path) -> str:
    """Returns a service that is no engine: a program that serves a folder, in the demo's place."""
    folder.mkdir()
    (folder / "index.html").write_text("a voice")
    program = words(sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", str(folder))
    return f'[service.voice]\nengine = "command"\nprogram = {program}\nclaim_gib = 0.1\nhealth = "/"\ngroup = "one"\n'


LLM = f'[service.chat]\nmodel = "{demo_model()}"\nserved_name = "small"\nreasoning = "off"\ngroup = "one"\n'


def test_a_podcast_asks_the_model_then_the_voice_in_its_place_and_ends_with_the_model(home: Home) -> None:
    script, sound = home.folder / "script.txt", home.folder / "sound"
    steps = [
        step("podcast", "write", service='"chat"', command=python(ASK, str(script))),
        step("podcast", "speak", service='"voice"', command=python(FETCH, str(sound))),
    ]
    home.configure(LLM + tts(home.folder / "www") + '[workflow.podcast]\nthen = "chat"\n' + "".join(steps), limits=QUICK)
    said = home.run("run", "podcast").stdout
    assert script.read_text()
    assert sound.read_text() == "a voice"
    parts = ("step 1 of 3: write", "starts chat", "letters", "step 2 of 3: speak", "stops chat", "step 3 of 3: then",
             "stops voice", "podcast is done in", "chat is up")  # fmt: skip
    assert [said.index(part) for part in parts] == sorted(said.index(part) for part in parts)
    assert home.service("chat").state is State.READY
    assert home.service("voice").state is State.STOPPED


def write_flaky(home: Home, then: str = "") -> Path:
    """A workflow of three steps, the second of which fails until a file is there; returns the file that they write to."""
    trace, mended = home.folder / "trace", home.folder / "mended"
    say = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + ' ')"
    flaky = f"{say}; import pathlib; sys.exit(0 if pathlib.Path(sys.argv[3]).exists() else 5)"
    steps = [
        step("flaky", "one", command=python(say, str(trace), "one")),
        step("flaky", "two", command=python(flaky, str(trace), "two", str(mended))),
        step("flaky", "three", command=python(say, str(trace), "three")),
    ]
    home.configure(f"[workflow.flaky]\n{then}\n" + "".join(steps), limits=QUICK)
    return trace


def test_a_failed_run_goes_on_at_the_failed_step_and_a_done_one_begins_anew(home: Home) -> None:
    trace = write_flaky(home)
    failed = home.run("run", "flaky", code=1).stderr
    assert "step `two` of flaky failed" in failed
    assert "exit code 5" in failed
    assert "`stoker run flaky` goes on at `two`" in failed
    (home.folder / "mended").touch()
    resumed = home.run("run", "flaky").stdout
    assert "goes on at `two`: exit code 5" in resumed
    assert trace.read_text() == "one two two three "
    whole = home.run("run", "flaky").stdout
    assert "step 1 of 3: one (it took" in whole
    assert trace.read_text() == "one two two three one two three "


def test_again_from_and_a_changed_table_say_where_a_run_begins(home: Home) -> None:
    trace = write_flaky(home)
    home.run("run", "flaky", code=1)
    assert "begins anew, as you asked" in home.run("run", "flaky", "--again", code=1).stdout
    assert trace.read_text() == "one two one two "
    assert "begins at `three`" in home.run("run", "flaky", "--from", "three").stdout
    home.run("run", "flaky", code=1)
    write_flaky(home, 'then = "stop"')
    assert "its table changed since the run that stopped at `two`" in home.run("run", "flaky", code=1).stdout
    assert "steps: one, two, three, then" in home.run("run", "flaky", "--from", "four", code=2).stderr
    home.run("run", "flaky", "--from", "two", "--again", code=2)


def test_a_run_whose_file_is_damaged_begins_anew_and_says_why(home: Home) -> None:
    trace = write_flaky(home)
    home.run("run", "flaky", code=1)
    home.paths.run_state("flaky").write_text('{"digest": 1')
    assert "begins anew" in home.run("run", "flaky", code=1).stdout
    assert trace.read_text() == "one two one two "


def test_json_is_one_document_with_the_commands_output_beside_it(home: Home) -> None:
    write_flaky(home)
    done = home.run("run", "flaky", "--json", code=1)
    view = json.loads(done.stdout)
    assert [one["outcome"] for one in view["steps"]] == ["done", "failed", "left"]
    assert (view["outcome"], view["exit_code"], view["why"]) == ("failed", 1, "exit code 5")
    planned = home.json("run", "flaky", "--dry-run")
    assert [one["outcome"] for one in planned["steps"]] == ["skipped", "left", "left"]
    assert planned["steps"][0]["last_s"] > 0


def test_a_dry_run_shows_everything_and_runs_nothing(home: Home) -> None:
    trace = write_flaky(home)
    said = home.run("run", "flaky", "--dry-run").stdout
    assert "three" in said
    assert not trace.exists()
    assert home.daemon_pid is None


@contextmanager
def begin(home: Home, *run: str) -> Iterator[subprocess.Popen[str]]:
    """Begins `stoker run`; a test that fails meanwhile ends it."""
    argv = [sys.executable, "-m", "stoker", "run", *run]
    with subprocess.Popen(argv, env=home.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as begun:
        try:
            yield begun
        except BaseException:
            begun.send_signal(signal.SIGINT)
            raise


SLEEPER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open(sys.argv[1] + ".new", "w").write(f"{os.getpid()} {child.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


def write_sleeper(home: Home, limit: str = "600") -> Path:
    """A workflow whose only step sleeps, with a child in a session of its own; returns the file with their pids."""
    pids = home.folder / "pids"
    home.configure(step("long", "nap", command=python(SLEEPER, str(pids)), limit_s=limit))
    return pids


def read_pids(file: Path) -> list[int]:
    """Returns the pids once they are there."""
    wait_for("the step's pids", file.exists)
    return [int(pid) for pid in file.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_the_command_with_its_children_and_the_run_can_go_on(home: Home, number: signal.Signals) -> None:
    file = write_sleeper(home)
    with begin(home, "long") as run:
        pids = read_pids(file)
        assert home.daemon.status().run is not None
        run.send_signal(number)
        assert run.wait(60) == 1
        assert run.stdout is not None
        assert "step `nap` of long was interrupted" in run.stdout.read()
    assert not any(is_running(pid) for pid in pids)
    assert home.daemon.status().run is None
    assert "goes on at `nap`: it was interrupted" in home.run("run", "long", "--dry-run").stdout


def test_a_second_run_is_refused_while_one_is_under_way(home: Home) -> None:
    file = write_sleeper(home)
    with begin(home, "long") as run:
        read_pids(file)
        refused = home.run("run", "long", code=3).stderr
        assert f"`long` is run by pid {run.pid}" in refused
        assert f"runs     long (pid {run.pid}" in home.run("status").stdout
        run.send_signal(signal.SIGINT)
        run.wait(60)


def test_a_killed_run_leaves_a_command_that_the_next_one_ends_first(home: Home) -> None:
    file = write_sleeper(home)
    with begin(home, "long") as run:
        before = read_pids(file)
        run.kill()
    assert all(is_running(pid) for pid in before)
    file.unlink()
    with begin(home, "long") as again:
        after = read_pids(file)
        assert not any(is_running(pid) for pid in before)
        again.send_signal(signal.SIGINT)
        assert again.wait(60) == 1
        assert again.stdout is not None
        assert "goes on at `nap`: the run before was killed there" in again.stdout.read()
    assert not any(is_running(pid) for pid in after)


def test_a_command_that_outlasts_its_limit_is_ended(home: Home) -> None:
    file = write_sleeper(home, "2.0")
    said = home.run("run", "long", code=4).stderr
    assert "did not end within 2 s (limit_s)" in said
    assert not any(is_running(pid) for pid in read_pids(file))


@pytest.mark.parametrize(
    ("keys", "code", "says"),
    [
        ({"command": '["no-such-program"]'}, 3, "there is no program `no-such-program`"),
        ({"command": '["true"]', "cwd": '"nowhere"'}, 3, "there is no folder"),
        ({"service": '"chatt"'}, 2, "did you mean `chat`?"),
        ({"service": '"broken"'}, 3, "there is no program `/no/such`"),
        ({}, 2, "the step does nothing - at `workflow.bad.step[1]`"),
    ],
)
def test_what_would_fail_later_is_refused_before_the_first_step(
    home: Home, keys: dict[str, Any], code: int, says: str
) -> None:
    broken = '[service.broken]\nengine = "command"\nprogram = ["/no/such"]\nclaim_gib = 0.1\nready_line = "up"\n'
    first = step("bad", "first", command=words("touch", str(home.folder / "touched")))
    home.configure(LLM + broken + first + step("bad", "second", **keys))
    assert says in home.run("run", "bad", code=code).stderr
    assert not (home.folder / "touched").exists()


def test_a_workflow_that_is_not_there_is_answered_with_those_that_are(home: Home) -> None:
    write_flaky(home)
    assert "workflows here: flaky" in home.run("run", "flakey", code=2).stderr


def test_then_stop_leaves_none_of_its_services_up_and_others_alone(home: Home) -> None:
    home.run("up")
    keys = {"service": '"voice"', "command": words("true")}
    home.configure(tts(home.folder / "www") + '[workflow.say]\nthen = "stop"\n' + step("say", "speak", **keys), limits=QUICK)
    assert "say is done" in home.run("run", "say").stdout
    assert home.service("voice").state is State.STOPPED
    assert home.service("demo").state is State.READY


def test_a_command_that_brings_its_own_address_is_not_given_our_key(home: Home) -> None:
    seen = home.folder / "seen"
    write = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
    environment = '{ OPENAI_BASE_URL = "https://elsewhere.example/v1" }'
    home.configure(step("own", "ask", command=python(write, str(seen)), environment=environment))
    home.environment.pop("OPENAI_API_KEY", None)
    home.run("run", "own")
    variables = json.loads(seen.read_text())
    assert variables["OPENAI_BASE_URL"] == "https://elsewhere.example/v1"
    assert "OPENAI_API_KEY" not in variables
    assert home.daemon.key not in variables.values()
    control = home.paths.control_key_file.read_text().strip()
    assert control not in variables.values()


def test_no_key_is_in_the_words_of_a_command_or_in_what_is_kept_of_a_run(home: Home) -> None:
    file = write_sleeper(home)
    with begin(home, "long") as run:
        [pid, _] = read_pids(file)
        key = home.daemon.key.encode()
        assert key in Path(f"/proc/{pid}/environ").read_bytes()
        assert key not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert key not in home.paths.run_state("long").read_bytes()
        assert home.paths.run_state("long").stat().st_mode & 0o077 == 0
        run.send_signal(signal.SIGINT)
        run.wait(60)
