"""`stoker clients` as it is typed: what clients are told works with the real ones, and what is found can be mended."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from home import Home
from stoker.supervise.process import find_marked

SERVER = str(Path(__file__).parents[1] / "mcp_server.py")
SLOW_S = 3.0


def vibe_settings(folder: Path, log: Path) -> Path:
    """Writes Vibe's settings as the published report has them, and beside its table the list that Vibe really reads.

    The wallet is slow to start, the forge and the monitoring are not; the forge is disabled.
    """
    folder.mkdir(parents=True)
    entries = "".join(
        f'\n[[mcp_servers]]  # {name}\nname = "{name}"\ntransport = "stdio"\ncommand = "{sys.executable}"\n'
        f'args = ["{SERVER}", "{log}", "{name}"{more}]\n'
        for name, more in (("alby", f', "--slow", "{SLOW_S}"'), ("gitea", ""), ("monitoring", ', "--child"'))
    )
    text = '# mine\nactive_model = "devstral"\n\n[mcp.alby]\ncommand = "npx"\nargs = ["-y", "@getalby/mcp"]\n' + entries
    file = folder / "config.toml"
    file.write_text(text)
    file.chmod(0o600)
    return file


@pytest.fixture
def vibe(home: Home) -> Home:
    """A Stoker whose user has a Vibe with three MCP servers."""
    home.environment |= {"HOME": str(home.folder), "VIBE_HOME": str(home.folder / "vibe")}
    vibe_settings(home.folder / "vibe", home.folder / "log")
    return home


def started(home: Home) -> list[str]:
    """Returns which servers were started so far, in order."""
    log = home.folder / "log"
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def test_vibe_starts_stoker_mcp_by_the_entry_that_it_is_given(home: Home) -> None:
    home.environment |= {"HOME": str(home.folder), "VIBE_HOME": str(home.folder / "vibe")}
    (home.folder / "vibe").mkdir()
    entry = home.run("clients", "config", "vibe", "--mcp").stdout
    (home.folder / "vibe" / "config.toml").write_text(entry)
    [start] = home.json("clients", "check", "vibe")["starts"]
    assert (start["server"], start["tools"], start["why"]) == ("stoker", 13, "")
    [server] = tomllib.loads(entry)["mcp_servers"]
    assert server["env"] == {"STOKER_STATE": str(home.paths.state), "STOKER_CONFIG": str(home.paths.config)}


@pytest.mark.parametrize("name", ["claude-code", "opencode"])
def test_the_entries_of_other_agents_start_the_same(home: Home, name: str) -> None:
    made = home.json("clients", "config", name, "--mcp")
    tree = json.loads(made["text"])
    entry = (tree.get("mcpServers") or tree["mcp"])["stoker"]
    words = [entry["command"], *entry["args"]] if isinstance(entry["command"], str) else entry["command"]
    variables = {"PATH": "/usr/bin:/bin", **(entry.get("env") or entry["environment"])}
    asked = '{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "stoker://plans/nobody"}}\n'
    done = subprocess.run(words, input=asked, env=variables, capture_output=True, text=True, check=True)
    assert "no plan of `nobody` is kept" in done.stdout
    assert done.stderr == ""


def test_an_entry_needs_an_agent_that_is_known_and_neither_model_nor_key(home: Home) -> None:
    assert "did you mean `vibe`?" in home.run("clients", "config", "vibes", "--mcp", code=2).stderr
    assert "neither a model nor a key" in home.run("clients", "config", "vibe", "--mcp", "--with-key", code=2).stderr


def test_a_slow_start_of_vibe_is_found_and_mended_without_losing_anything(vibe: Home) -> None:
    file = vibe.folder / "vibe" / "config.toml"
    before = file.read_text()
    said = vibe.run("clients", "check", "vibe", code=1).stdout
    assert started(vibe) == ["alby", "gitea", "monitoring"]
    assert f"`[mcp.alby]`   {file}:4" in said
    assert "vibe-mcp-slow-start" in said
    assert "so the slowest decides: 3." in said
    report = vibe.run("clients", "check", "vibe", "--remove", "alby", "--json", code=0)
    told = json.loads(report.stdout)
    assert [(one["server"], one["tools"]) for one in told["starts"]] == [("gitea", 2), ("monitoring", 2)]
    assert max(one["ready_s"] for one in told["starts"]) < SLOW_S
    assert told["findings"] == []
    assert Path(told["backup"]).read_text() == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, Path(told["backup"]))} == {0o600}
    after = tomllib.loads(file.read_text())
    assert [one["name"] for one in after["mcp_servers"]] == ["gitea", "monitoring"]
    assert "mcp" not in after
    assert [line for line in before.splitlines() if line.removeprefix("# ") not in file.read_text()] == []
    assert list(find_marked("mcp-check/")) == []


def test_a_project_that_vibe_does_not_trust_starts_nothing(vibe: Home) -> None:
    project = vibe.folder / "somebodys"
    vibe_settings(project / ".vibe", vibe.folder / "log")
    said = vibe.run("clients", "check", "vibe", str(project), code=1).stdout
    assert started(vibe) == []
    assert "the client does not trust this file; --start starts them" in said
    (vibe.folder / "vibe" / "trusted_folders.toml").write_text(f'trusted = ["{project}"]\n')
    vibe.run("clients", "check", "vibe", str(project), code=1)
    assert started(vibe) == ["alby", "gitea", "monitoring"]
    vibe.run("clients", "check", "vibe", str(project), "--no-start", code=1)
    assert len(started(vibe)) == 3
    trust = f'trusted = ["{vibe.folder}"]\nuntrusted = ["{project}"]\n'
    (vibe.folder / "vibe" / "trusted_folders.toml").write_text(trust)
    vibe.run("clients", "check", "vibe", str(project), code=1)
    assert len(started(vibe)) == 3


def test_an_installed_program_is_called_in_place_of_a_look_up(vibe: Home) -> None:
    programs = vibe.folder / "bin"
    programs.mkdir()
    program = programs / "mcp-wallet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SERVER}" "{vibe.folder}/log" installed "$@"\n')
    program.chmod(0o755)
    file = vibe.folder / "vibe" / "config.toml"
    file.write_text(
        '[[mcp_servers]]\nname = "w"\ntransport = "stdio"\ncommand = "uvx"\nargs = ["mcp-wallet@2", "--tools", "7"]\n'
    )
    said = vibe.run("clients", "check", "vibe", "--no-start", code=1).stdout
    assert "`uv tool install mcp-wallet@2` installs it once" in said
    vibe.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    assert vibe.run("clients", "check", "vibe", "--mend", code=0).stdout.startswith(f"nothing is known against {file}")
    [entry] = tomllib.loads(file.read_text())["mcp_servers"]
    assert (entry["command"], entry["args"]) == (str(program), ["--tools", "7"])
    assert started(vibe) == ["installed"]


def test_a_file_that_is_no_utf8_is_not_rewritten(vibe: Home) -> None:
    file = vibe.folder / "vibe" / "config.toml"
    before = b"# caf\xe9\n" + file.read_bytes()
    file.write_bytes(before)
    assert "save it as UTF-8" in vibe.run("clients", "check", "vibe", "--remove", "alby", code=1).stderr
    assert file.read_bytes() == before


def test_a_linked_file_stays_a_link(vibe: Home) -> None:
    file, dotfiles = vibe.folder / "vibe" / "config.toml", vibe.folder / "dotfiles.toml"
    file.rename(dotfiles)
    file.symlink_to(dotfiles)
    vibe.run("clients", "check", "vibe", "--no-start", "--remove", "gitea", code=0)
    assert file.is_symlink()
    assert [one["name"] for one in tomllib.loads(dotfiles.read_text())["mcp_servers"]] == ["alby", "monitoring"]


def test_a_server_that_is_not_there_cannot_be_removed_and_nothing_is_written(vibe: Home) -> None:
    file = vibe.folder / "vibe" / "config.toml"
    before = file.read_text()
    said = vibe.run("clients", "check", "vibe", "--remove", "albi", code=2).stderr
    assert "no server called `albi`" in said
    assert "alby, gitea, monitoring" in said
    assert file.read_text() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["config.toml"]
    file.parent.chmod(0o500)
    if os.geteuid() != 0:  # root writes everywhere
        assert "it is as it was" in vibe.run("clients", "check", "vibe", "--remove", "alby", code=1).stderr
    file.parent.chmod(0o700)


def test_settings_that_are_not_there_are_looked_for_by_name(home: Home) -> None:
    home.environment |= {"HOME": str(home.folder)}
    home.environment.pop("VIBE_HOME", None)
    said = home.run("clients", "check", "vibe", code=2).stderr
    assert f"{home.folder}/.vibe/config.toml" in said
    assert "they are in no file of their own" in home.run("clients", "check", "curl", code=2).stderr
    assert "starts no servers" in home.run("clients", "check", "litellm", "x.yaml", "--mend", code=2).stderr
    assert "did you mean `vibe`" in home.run("clients", "check", "vibes", code=2).stderr


@pytest.mark.parametrize("name", ["openai", "mistralai"])
def test_the_real_library_is_answered_with_what_it_is_told(demo: Home, name: str) -> None:
    program = demo.run("clients", "config", name).stdout
    assert demo.daemon.key not in program
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_real_curl_is_answered_with_what_it_is_told(demo: Home) -> None:
    command = demo.run("clients", "config", "curl").stdout
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert '"model":"stoker-demo"' in done.stdout, done.stderr
    assert demo.daemon.key not in command


def test_the_wrong_addresses_that_are_warned_of_really_fail(demo: Home) -> None:
    without = demo.run("clients", "config", "openai").stdout.replace("/v1", "")
    doubled = demo.run("clients", "config", "mistralai").stdout.replace('") as client', '/v1") as client')
    for program, code in ((without, "404"), (doubled, "404")):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert code in done.stderr, program


def test_the_key_is_printed_when_it_is_asked_for(demo: Home) -> None:
    plain, asked = demo.run("clients", "config", "vibe"), demo.run("clients", "config", "vibe", "--with-key")
    assert demo.daemon.key not in plain.stdout + plain.stderr
    assert demo.daemon.key in asked.stderr
    assert demo.json("clients", "config", "vibe")["key"] is None


def test_a_file_is_held_against_the_gateway_that_runs(demo: Home, tmp_path: Path) -> None:
    text = demo.run("clients", "config", "litellm").stdout
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert demo.run("clients", "check", "litellm", str(file)).stdout == f"nothing is known against {file}\n"
    engine = demo.service("demo").address
    assert engine is not None
    file.write_text(text.replace("openai/stoker-demo", "openai/gpt-4o") + "# " + engine)
    assert "the gateway has `stoker-demo`" in demo.run("clients", "check", "litellm", str(file), code=1).stdout
    file.write_text(text.replace(f"{demo.daemon.url}/v1", f"{engine}/v1"))
    assert "client-port-engine" in demo.run("clients", "check", "litellm", str(file), code=1).stdout


def test_without_a_daemon_what_cannot_be_known_is_said(home: Home, tmp_path: Path) -> None:
    said = home.run("clients", "config", "vibe", code=3).stderr
    assert "name the model with --model" in said
    home.configure(gateway="port = 8700")
    text = home.run("clients", "config", "continue", "--model", "qwen3-coder").stdout
    file = tmp_path / "config.yaml"
    file.write_text(text)
    done = home.run("clients", "check", "continue", str(file))
    assert "unknown: which models there are: no daemon answers" in done.stdout


def test_signs_that_drive_a_terminal_are_not_passed_on(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text('OpenAI(base_url="http://0.0.0.0:1/\x1b[31mv1")\n')
    assert "\x1b" not in home.run("clients", "check", "openai", str(file), code=1).stdout
