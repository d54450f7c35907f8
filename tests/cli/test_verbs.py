"""What every verb has, and what a person reads when something is off."""

from __future__ import annotations

import json
import os
import pkgutil
import pwd
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from home import Home
from stoker.cli import verbs
from stoker.config import Paths, demo_model, parse_config
from stoker.records import DoorSettings, IdleSettings, WorkflowStep

VERBS = sorted(found.name for found in pkgutil.iter_modules(verbs.__path__))
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example_and_json(home: Home, verb: str) -> None:
    text = home.run(verb, "--help").stdout
    assert "Example:" in text
    assert f"stoker {verb}" in text
    assert "--json" in text


def test_help_lists_every_verb_with_a_sentence(home: Home) -> None:
    lines = home.run("--help").stdout.splitlines()
    for verb in VERBS:
        [line] = [line for line in lines if line.startswith(f"  {verb} ")]
        assert line.rstrip().endswith(".")


def test_the_generated_pages_are_what_the_verbs_say() -> None:
    script = DOCS.parent / "tools" / "make_docs.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_documented_configuration_is_understood() -> None:
    import tomllib

    text = (DOCS / "configuration.md").read_text().split("```toml")[1].split("```")[0]
    config = parse_config(tomllib.loads(text), "docs")
    assert config.gateway == type(config.gateway)()
    assert config.limits == type(config.limits)()
    assert config.services["coder"].served_name == "qwen3-coder"
    documented = {key for table in tomllib.loads(text)["service"].values() for key in table}
    assert {*config.services["coder"].__struct_fields__, *DoorSettings.__struct_fields__} - {"name"} == documented
    assert config.aliases == {"gpt-4o": "qwen3-coder", "any": "*"}


def test_the_documented_workflows_are_understood() -> None:
    import tomllib

    config = parse_config(tomllib.loads((DOCS / "workflows.md").read_text().split("```toml")[1].split("```")[0]), "docs")
    assert sorted(config.workflows) == ["article", "hero", "podcast"]
    shown = parse_config(tomllib.loads((DOCS / "configuration.md").read_text().split("```toml")[1].split("```")[0]), "docs")
    first, *_ = shown.workflows["podcast"].step
    fields = {name: getattr(first, name) for name in first.__struct_fields__}
    assert all(fields.values())
    assert fields["limit_s"] == WorkflowStep("x").limit_s
    assert shown.idle.idle_s == IdleSettings().idle_s


@pytest.mark.parametrize("words", [("up", "--nonsense"), ("up", "--port", "seventy"), ("up", "--speculation", "magic")])
def test_wrong_words_are_wrong_use(home: Home, words: tuple[str, ...]) -> None:
    said = home.run(*words, code=2).stderr
    assert said.startswith("stoker: ")
    assert "next: stoker up [OPTIONS] [TARGET]; `stoker up --help` explains it" in said


def test_wrong_words_are_told_to_programs_too(home: Home) -> None:
    fault = json.loads(home.run("up", "--nonsense", "--json", code=2).stdout)["fault"]
    assert "no such option '--nonsense'" in fault["what"]
    assert fault["exit_code"] == 2


@pytest.mark.parametrize("verb", ["keys", "boxes", "clients"])
def test_a_group_alone_shows_what_it_can_do(home: Home, verb: str) -> None:
    assert "Commands:" in home.run(verb).stdout


def test_unquoted_words_are_one_question(demo: Home) -> None:
    words = demo.run("ask", "--temperature", "0", "Who", "are", "you?").stdout
    assert words == demo.run("ask", "--temperature", "0", "Who are you?").stdout


def test_a_box_is_not_joined_without_a_code(home: Home) -> None:
    said = home.run("boxes", "add", "spark-b", "https://127.0.0.1:1", input="\n", code=2).stderr
    assert "no join code came" in said
    assert "`stoker boxes code` on that box prints one" in said
    assert home.daemon_pid is None


def test_the_only_service_needs_no_name_to_tell_its_history(home: Home, demo: Home) -> None:
    assert "no service ran here yet" in home.run("history", code=2).stderr
    assert "`demo`" in demo.run("history", "--since", "1s", code=2).stderr


def test_a_lint_says_for_which_machine_it_judges(home: Home) -> None:
    words = ("--", "llama-server", "-m", "/models/m.gguf")
    assert "judged for this machine" in home.run("lint", *words, code=None).stdout
    assert "judged for gb10" in home.run("lint", "--on", "gb10", *words, code=None).stdout


def write_broken_models(folder: Path) -> None:
    """Writes one of each kind of file that is no model."""
    whole = demo_model().read_bytes()
    (folder / "empty.gguf").touch()
    (folder / "words.gguf").write_text("this is not a model")
    (folder / "head.gguf").write_bytes(whole[:100])
    (folder / "cut.gguf").write_bytes(whole[:-1000])
    (folder / "empty-folder").mkdir()
    (folder / "two").mkdir()
    (folder / "two" / "a.gguf").write_bytes(whole)
    (folder / "two" / "b.gguf").write_bytes(whole)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.gguf", "there is no model at"),
        ("empty.gguf", "is empty"),
        ("words.gguf", "is not a GGUF file"),
        ("head.gguf", "is cut short"),
        ("cut.gguf", "is cut short"),
        ("empty-folder", "it is empty"),
        ("two", "holds 2 GGUF files"),
    ],
)
def test_a_path_that_is_no_model_is_refused_and_nothing_runs(home: Home, path: str, says: str) -> None:
    write_broken_models(home.folder)
    said = home.run("up", str(home.folder / path), code=3)
    assert says in said.stderr
    assert home.engines() == {}


def test_a_folder_with_one_model_is_served_under_the_folders_name(home: Home) -> None:
    folder = home.folder / "My Model (v1)"
    folder.mkdir()
    (folder / "weights.gguf").write_bytes(demo_model().read_bytes())
    view = home.json("up", str(folder))
    assert (view["name"], view["state"]) == ("my-model-v1", "READY")


def test_a_draft_beside_the_model_drafts_for_it_and_that_is_said(home: Home) -> None:
    folder = home.folder / "pair"
    folder.mkdir()
    for file in (demo_model(), demo_model(draft=True)):
        (folder / file.name).symlink_to(file)
    said = home.run("up", str(folder)).stdout
    assert f"{demo_model(draft=True).name} lies beside the model and drafts for it" in said
    assert home.daemon.plan_of("pair").model_path == str(folder / demo_model().name)
    reasons = {one.name: one.because for one in home.daemon.plan_of("pair").settings}
    assert reasons["draft_model"] == "it came with the model"
    assert "lies beside the model" in reasons["speculation_type"]
    assert "drafts for it" not in home.run("up", str(folder), "--speculation", "off").stdout


def test_a_word_that_is_neither_service_nor_file_is_answered_with_what_there_is(home: Home) -> None:
    said = home.run("up", "qwen", code=2).stderr
    assert "no service called `qwen`" in said
    assert "there is no service called `aaaa" in home.run("plan", "a" * 300, code=2).stderr
    assert "demo" in said


def test_a_mistyped_key_is_named_with_its_neighbour(home: Home) -> None:
    home.configure('[service.coder]\nmodell = "x.gguf"')
    said = home.run("up", "coder", code=2).stderr
    assert "unknown key `service.coder.modell`" in said
    assert "did you mean `model`?" in said


def test_a_context_beyond_the_models_is_refused_with_the_reason(home: Home) -> None:
    said = home.run("up", "demo", "--context", "100000", code=3).stderr
    assert "was trained for 4,096" in said


def test_a_draft_model_with_another_vocabulary_is_refused(home: Home) -> None:
    said = home.run("up", "demo", "--speculation", "draft", "--draft", "/nonexistent.gguf", code=3).stderr
    assert "there is no model at /nonexistent.gguf" in said


def test_a_taken_gateway_port_is_named_with_who_took_it(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        home.configure(gateway=f"port = {taken.getsockname()[1]}")
        said = home.run("up", code=3).stderr
    assert "the gateway cannot listen on" in said
    assert f"(pid {os.getpid()})" in said
    assert "gateway.port" in said


@pytest.mark.parametrize("verb", ["up", "serve"])
def test_a_state_folder_that_cannot_be_written_is_refused(home: Home, verb: str) -> None:
    home.environment["STOKER_STATE"] = "/proc/stoker"
    said = home.run(verb, code=3).stderr
    assert "the state folder /proc/stoker cannot be written" in said
    assert "STOKER_STATE" in said
    home.environment["STOKER_STATE"] = str(home.paths.state)


def test_a_damaged_database_is_named_and_left_alone(home: Home) -> None:
    home.paths.state.mkdir()
    home.paths.database.write_bytes(b"not a database" * 1000)
    said = home.run("up", code=1).stderr
    assert f"{home.paths.database} cannot be used" in said
    assert home.paths.database.read_bytes() == b"not a database" * 1000
    home.paths.database.unlink()


@pytest.mark.parametrize("words", [("ask", "hello"), ("down",), ("status",), ("logs",)])
def test_verbs_without_a_daemon_say_so(home: Home, words: tuple[str, ...]) -> None:
    done = home.run(*words, code=None)
    assert "daemon is not running" in done.stdout + done.stderr or "there are no logs yet" in done.stderr
    assert done.returncode in (0, 2, 3)


def test_asking_for_a_model_that_is_not_there_names_those_that_are(demo: Home) -> None:
    said = demo.run("ask", "hello", "--model", "gpt-4o", code=1).stderr
    assert "There is no model `gpt-4o` here" in said
    assert "`stoker-demo`" in said


def test_a_hostile_service_name_reaches_no_file(demo: Home) -> None:
    assert "there is no log" in demo.run("logs", "../../etc/passwd", code=2).stderr
    assert "is no service's name" in demo.run("down", "../x", code=2).stderr
    assert "there is no service called `other`" in demo.run("down", "other", code=2).stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(home: Home, shell: str) -> None:
    assert "_STOKER_COMPLETE" in home.run("completion", shell).stdout


def test_bash_completes_verbs(home: Home) -> None:
    words = {"COMP_WORDS": "stoker st", "COMP_CWORD": "1", "_STOKER_COMPLETE": "bash_complete"}
    home.environment |= words
    done = home.run()
    for name in words:
        del home.environment[name]
    assert "plain,status" in done.stdout


def test_facts_tell_of_this_machine(home: Home) -> None:
    facts = home.json("facts")
    assert facts["memory"]["total_bytes"] >= facts["memory"]["available_bytes"] > 0
    assert facts["engines"]["llamacpp"]
    assert "available of" in home.run("facts").stdout


def test_what_nobody_foresaw_is_a_sentence_and_the_traceback_is_for_verbose(home: Home) -> None:
    home.paths.config.unlink()
    home.paths.config.mkdir()  # reading a folder as a file
    assert "cannot be read" in home.run("up", code=2).stderr
    home.paths.config.rmdir()
    home.configure()


def test_paths_follow_xdg(tmp_path: Path) -> None:
    from stoker.config import find_paths

    found = find_paths({"HOME": "/home/me", "XDG_STATE_HOME": str(tmp_path)})
    assert found == Paths(state=tmp_path / "stoker", config=Path("/home/me/.config/stoker/stoker.toml"))


def test_with_json_an_error_is_json_too(home: Home) -> None:
    done = home.run("up", "/nonexistent/x.gguf", "--json", code=3)
    fault = json.loads(done.stdout)["fault"]
    assert fault["exit_code"] == 3
    assert fault["what"] == "there is no model at /nonexistent/x.gguf"


def test_relative_paths_begin_where_the_command_was_given(home: Home) -> None:
    (home.folder / "m.gguf").write_bytes(demo_model().read_bytes())
    (home.folder / "d.gguf").write_bytes(demo_model(draft=True).read_bytes())
    words = ("up", "m.gguf", "--speculation", "draft", "--draft", "d.gguf", "--json")
    view = json.loads(home.run(*words, cwd=home.folder).stdout)
    assert (view["name"], view["state"]) == ("m", "READY")


def test_relative_paths_in_the_configuration_begin_at_its_folder(home: Home) -> None:
    (home.folder / "m.gguf").write_bytes(demo_model().read_bytes())
    home.configure('[service.mine]\nmodel = "m.gguf"')
    assert home.json("up", "mine")["state"] == "READY"


@pytest.mark.parametrize("words", [("logs", "-f", "demo"), ("status", "--watch")])
def test_ctrl_c_ends_a_watching_verb_without_a_complaint(demo: Home, words: tuple[str, ...]) -> None:
    argv = [sys.executable, "-m", "stoker", *words]
    with subprocess.Popen(argv, env=demo.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as verb:
        assert verb.stdout is not None
        verb.stdout.readline()
        verb.send_signal(signal.SIGINT)
        _, said = verb.communicate(timeout=30)
    assert (verb.returncode, said) == (0, b"")


def test_status_without_a_home_variable_uses_the_users_home(home: Home) -> None:
    from stoker.config import find_paths

    found = find_paths({"XDG_STATE_HOME": "relative/is/ignored"})
    assert found.state == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".local/state/stoker"


@pytest.mark.parametrize(("word", "hint"), [("stauts", "stoker status"), ("stop", "stoker down"), ("nonsense", "--help")])
def test_a_verb_that_does_not_exist_is_wrong_use_with_the_one_that_was_meant(home: Home, word: str, hint: str) -> None:
    done = home.run(word, code=2)
    assert f"there is no verb `{word}`" in done.stderr
    assert hint in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["check", "~nobody-here/m"], ["fetch", "org/name", "--to", "~nobody-here/m", "--dry-run"],
        ["install", "prometheus", "--to", "~nobody-here", "--gateway", "127.0.0.1:8000"],
    ],
)  # fmt: skip
def test_a_home_of_nobody_is_named(home: Home, words: list[str]) -> None:
    told = home.run(*words, code=2).stderr
    assert "`~nobody-here" in told
    assert "begins with a user's name that this machine does not know" in told
    assert "Stoker itself failed" not in told


@pytest.mark.parametrize("words", [["facts"], ["plan", "org/name"], ["fetch", "org/name", "--dry-run"]])
def test_a_variable_that_names_a_home_of_nobody_is_named_too(home: Home, words: list[str]) -> None:
    home.environment["HF_HOME"] = "~nobody-here"
    assert "`~nobody-here` of $HF_HOME begins with a user's name" in home.run(*words, code=2).stderr
