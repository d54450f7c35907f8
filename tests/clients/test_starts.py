"""Real MCP servers, started as a client starts them: timed, counted, bounded, and never left behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from stoker.flows.mcp_starts import download_facts, start_facts, time_starts
from stoker.records import McpServer, McpStart
from stoker.supervise.process import find_marked

SERVER = str(Path(__file__).parents[1] / "mcp_server.py")


def server(log: Path, name: str, *words: str, limit_s: float = 10.0, **environment: str) -> McpServer:
    """Returns a server as a client's file names it."""
    argv = (sys.executable, SERVER, str(log), name, *words)
    return McpServer(name, "stdio", argv, tuple(environment.items()), startup_limit_s=limit_s, first_line=7)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where servers write that they were started; none of their processes is left at the end."""
    return tmp_path / "log"


@pytest.fixture(autouse=True)
def _nothing_left() -> object:
    yield
    assert [marker for _, marker in find_marked("mcp-check/")] == []


def start(one: McpServer) -> McpStart:
    """Starts one server."""
    [found] = time_starts([one])
    return found


def test_a_servers_tools_are_counted_over_all_pages(log: Path) -> None:
    found = start(server(log, "wallet", "--tools", "120"))
    assert (found.tools, found.why) == (120, "")
    assert found.ready_s is not None
    assert 0 < found.ready_s < 5


def test_a_slow_server_is_timed_until_it_has_told_its_tools(log: Path) -> None:
    slow = server(log, "slow", "--slow", "1.5")
    found = start(slow)
    assert found.ready_s is not None
    assert found.ready_s > 1.5
    [fact] = start_facts([slow], [found])
    assert (fact.value, fact.line) == ("slow", 7)
    assert f"{found.ready_s:.1f} s" in fact.shown


def test_a_server_slower_than_the_client_waits_is_late_and_not_dead(log: Path) -> None:
    late = server(log, "late", "--slow", "1", limit_s=0.5)
    [fact] = start_facts([late], [start(late)])
    assert (fact.value, "`startup_timeout_sec` is 0.5" in fact.shown) == ("late", True)


def test_a_greeting_a_notification_and_a_question_are_passed_over(log: Path) -> None:
    assert start(server(log, "chatty", "--chatty")).tools == 2


def test_a_server_that_says_more_than_a_pipe_holds_is_not_blocked(log: Path) -> None:
    assert start(server(log, "flood", "--flood")).tools == 2


@pytest.mark.parametrize("switch", ["--child", "--deaf"])
def test_a_server_that_leaves_a_child_or_ignores_its_end_is_ended_all_the_same(log: Path, switch: str) -> None:
    assert start(server(log, "clinging", switch)).tools == 2
    pid = int(log.read_text().split()[1])
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_never_answers_is_given_up_by_name(log: Path) -> None:
    silent = server(log, "silent", "--silent", limit_s=0.5)
    begun_s = time.monotonic()
    [found] = time_starts([silent], patience_s=0.5)
    assert time.monotonic() - begun_s < 10
    assert (found.ready_s, found.tools) == (None, None)
    assert "it had not told its tools after 0.5 s" in found.why
    [fact] = start_facts([silent], [found])
    assert fact.value == "dead"


def test_a_server_that_dies_tells_why(log: Path) -> None:
    found = start(server(log, "broke", "--dies"))
    assert "it ended with exit code 1" in found.why
    assert "no such bank account" in found.why


@pytest.mark.parametrize("argv", [("/nonexistent/mcp",), ("/etc/passwd",), ("a\0b",)])
def test_a_program_that_cannot_be_started_is_said_to_be_so(argv: tuple[str, ...]) -> None:
    assert "could not be started" in start(McpServer("none", "stdio", argv)).why


def test_a_program_that_speaks_no_protocol_is_told_from_one_that_does() -> None:
    assert "it ended with exit code 0" in start(McpServer("true", "stdio", ("true",))).why
    assert "wrote over 1000 lines" in start(McpServer("yes", "stdio", ("yes",))).why
    assert "a line over 4 MiB" in start(McpServer("zero", "stdio", ("head", "-c", "9000000", "/dev/zero"))).why


def test_a_server_gets_what_the_client_hands_on_and_no_other_programs_secrets(log: Path) -> None:
    environment = {**os.environ, "SOMEBODYS_API_KEY": "sk-other"}
    [found] = time_starts([server(log, "wallet", NWC="nostr://x")], environment)
    assert found.tools == 2
    told = log.read_text().split()
    assert "NWC" in told
    assert "PATH" in told
    assert "SOMEBODYS_API_KEY" not in told


def test_what_a_server_was_given_is_not_passed_on_when_it_says_it(log: Path) -> None:
    broke = server(log, "broke", "--dies", WALLET_SECRET="no such bank account")
    assert "no such bank account" not in start(broke).why


def test_a_server_over_http_is_not_started() -> None:
    assert time_starts([McpServer("far", "http", ())]) == ()


def test_what_a_download_costs_is_said_where_it_was_tried() -> None:
    one = McpServer("alby", "stdio", ("npx", "-y", "x"), package="x", installs=("npm", "install", "-g", "x"), first_line=3)
    [untried] = download_facts([one], [])
    [tried] = download_facts([one], [McpStart("alby", 7.2, 3)])
    assert "ready after" not in untried.shown
    assert "looks up x, ready after 7.2 s; `npm install -g x` installs it once" in tried.shown
    assert (tried.value, tried.line) == ("downloads", 3)
