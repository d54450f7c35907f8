"""Vibe's list of MCP servers: what is read of it, what each downloads, and that a mended file says what it should."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.clients import find
from stoker.clients.mcp_servers import find_download
from stoker.clients.mending import call_program, check_mended, take_out, take_out_ignored
from stoker.clients.toml_lines import find_lines
from stoker.errors import StokerError
from stoker.plan.importing.toml import render_value
from stoker.records import McpServer
from support import fails

TEXT = '''\
# my settings
active_model = "devstral"
prompt = """
[[mcp_servers]]
not = "a table"
"""

# what the seed of many reports shows
[mcp.alby]
command = "npx"
args = ["-y", "@getalby/mcp"]

# payments
[[mcp_servers]]
name = "alby"              # the wallet
transport = "stdio"
command = "npx"
args = [
  "-y",
  "@getalby/mcp",  # the newest
]
[mcp_servers.env]
NWC = "nostr://secret"

# the forge
[[mcp_servers]]
name = "gitea"
transport = "stdio"
command = "gitea-mcp --read-only"
startup_timeout_sec = 20
disabled = true

[[mcp_servers]]
name = "far"
transport = "http"
url = "http://127.0.0.1:8766/mcp"

[tools.bash]
permission = "ask"
'''


def servers(text: str) -> tuple[McpServer, ...]:
    """Returns the servers as Vibe's reader sees them."""
    read = find("vibe").servers
    assert read is not None
    return read(text)


def odd(text: str) -> list[tuple[object, int]]:
    """Returns what is odd in the servers, with the lines."""
    return [(fact.value, fact.line) for use in find("vibe").read(text, "config.toml") for fact in use.facts]


def test_servers_are_read_as_vibe_starts_them() -> None:
    alby, gitea, far = servers(TEXT)
    assert alby.argv == ("npx", "-y", "@getalby/mcp")
    assert alby.environment == (("NWC", "nostr://secret"),)
    assert (alby.package, alby.installs) == ("@getalby/mcp", ("npm", "install", "-g", "@getalby/mcp"))
    assert (alby.first_line, alby.last_line, alby.startup_limit_s) == (14, 23, 10.0)
    assert (gitea.argv, gitea.startup_limit_s, gitea.disabled) == (("gitea-mcp", "--read-only"), 20.0, True)
    assert (far.transport, far.argv) == ("http", ())


def test_the_table_that_vibe_passes_over_and_a_disabled_server_are_found_on_their_lines() -> None:
    assert odd(TEXT) == [("table", 9), ("disabled", 31)]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[mcp_servers.alby]\ncommand = "npx"', "map"),
        ('[[mcp_servers]]\nname = "a"\ncommand = "npx"', "no transport"),
        ('[[mcp_servers]]\nname = "a"\ntransport = "sse"', "no transport"),
        ('[[mcp_servers]]\nname = "a"\ntransport = "stdio"', "no command"),
        ('[[mcp_servers]]\nname = "a"\ntransport = "stdio"\ncommand = "a \'b"', "no command"),
        ("[mcp]\nx = 1", "table"),
    ],
)
def test_what_vibe_refuses_or_passes_over_is_told_apart(text: str, what: str) -> None:
    assert odd(text) == [(what, 1)]
    assert servers(text) == ()


def test_two_servers_of_one_name_are_both_named() -> None:
    entry = '[[mcp_servers]]\nname = "a"\ntransport = "http"\nurl = "x"\n'
    assert odd(entry + entry) == [("twice", 1), ("twice", 5)]


@pytest.mark.parametrize(
    ("words", "package", "program", "own", "installs"),
    [
        ("npx -y @getalby/mcp", "@getalby/mcp", "@getalby/mcp", (), "npm install -g @getalby/mcp"),
        ("npx -y @getalby/mcp@1.2 --x", "@getalby/mcp@1.2", "@getalby/mcp", ("--x",), "npm install -g @getalby/mcp@1.2"),
        ("/usr/bin/npx --package=a -y b c", "a", "b", ("c",), "npm install -g a"),
        ("npx -p a b", "a", "b", (), "npm install -g a"),
        ("uvx fetch==2 --port 1", "fetch==2", "fetch", ("--port", "1"), "uv tool install fetch==2"),
        ("uvx --from git+https://x/y tool a", "git+https://x/y", "tool", ("a",), "uv tool install git+https://x/y"),
        ("uv tool run ruff", "ruff", "ruff", (), "uv tool install ruff"),
        ("pipx run --spec a[b] c", "a[b]", "c", (), "pipx install a[b]"),
        ("npm exec -- cowsay hi", "cowsay", "cowsay", ("hi",), "npm install -g cowsay"),
    ],
)  # fmt: skip
def test_a_package_that_is_looked_up_at_each_start_is_recognised(
    words: str, package: str, program: str, own: tuple[str, ...], installs: str
) -> None:
    found = find_download(words.split())
    assert found is not None
    assert (found.package, found.program, found.words, " ".join(found.installs)) == (package, program, own, installs)


@pytest.mark.parametrize("words", ["gitea-mcp", "uv run server.py", "pipx list", "npx", "npm start", "python -m npx"])
def test_a_program_that_is_there_downloads_nothing(words: str) -> None:
    assert find_download(words.split()) is None


def test_a_server_that_is_taken_out_becomes_a_comment_and_nothing_else_changes() -> None:
    alby, _, _ = servers(TEXT)
    after = take_out(TEXT, [alby], "why")
    wanted = tomllib.loads(TEXT)
    del wanted["mcp_servers"][0]
    assert tomllib.loads(after) == wanted
    kept = [line for line in TEXT.splitlines() if line not in TEXT.splitlines()[13:23]]
    assert [line for line in after.splitlines() if line in kept] == kept
    assert [line.removeprefix("# ") for line in after.splitlines()[14:24]] == TEXT.splitlines()[13:23]


def test_the_ignored_table_becomes_a_comment() -> None:
    after = take_out_ignored(TEXT, "why")
    wanted = tomllib.loads(TEXT)
    del wanted["mcp"]
    assert tomllib.loads(after) == wanted
    assert "# [mcp.alby]\n" in after


def test_an_installed_program_takes_the_place_of_the_look_up() -> None:
    alby, gitea, _ = servers(TEXT)
    after = call_program(TEXT, alby, ("/opt/bin/alby-mcp", "--x"), "why")
    entry = tomllib.loads(after)["mcp_servers"][0]
    assert (entry["command"], entry["args"]) == ("/opt/bin/alby-mcp", ["--x"])
    assert '# command = "npx"\n' in after
    assert '#   "@getalby/mcp",  # the newest\n' in after
    again = call_program(after, servers(after)[1], ("/opt/bin/gitea",), "why")
    assert tomllib.loads(again)["mcp_servers"][1]["command"] == "/opt/bin/gitea"
    assert gitea.name == "gitea"


def test_a_file_that_would_not_say_what_it_should_is_not_written() -> None:
    inline = 'mcp_servers = [{name = "a", transport = "stdio", command = "npx x"}]\n'
    [server] = servers(inline)
    with fails(StokerError, "was not mended", "nothing was written"):
        check_mended(inline, take_out(inline, [server], "why"), {0}, {})
    with fails(StokerError, "no line with its command"):
        call_program(inline, server, ("x",), "why")


TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)
ENTRY = st.fixed_dictionaries(
    {"name": TEXTS.filter(bool), "transport": st.just("stdio"), "command": st.sampled_from(["npx a", "x"])},
    optional={"args": st.lists(TEXTS, max_size=3), "prompt": TEXTS},
)


def written(entries: list[dict[str, Any]], broken: bool) -> str:
    """Returns entries as TOML, lists over several lines if wanted."""
    lines = ['active_model = "[[mcp_servers]]"']
    for entry in entries:
        lines += ["", "# [[mcp_servers]]", "[[mcp_servers]]"]
        for name, value in entry.items():
            if isinstance(value, list):
                between = ",\n  " if broken else ", "
                lines.append(f"{name} = [{between.join(map(render_value, value))}]")
            else:
                lines.append(f"{name} = {render_value(value)}")
    return "\n".join([*lines, "", "[tools.x]", "permission = 'ask'", ""])


@given(st.lists(ENTRY, min_size=1, max_size=4, unique_by=lambda one: one["name"]), st.booleans(), st.data())
def test_whatever_the_entries_hold_one_is_taken_out_whole(entries: list[dict[str, Any]], broken: bool, data: Any) -> None:
    text = written(entries, broken)
    place = data.draw(st.integers(0, len(entries) - 1))
    after = take_out(text, [servers(text)[place]], "why")
    check_mended(text, after, {place}, {})
    changed = call_program(text, servers(text)[place], ("/bin/y", "z"), "why")
    check_mended(text, changed, set(), {place: ("/bin/y", "z")})


def test_a_last_line_without_an_end_is_mended_too() -> None:
    text = '[[mcp_servers]]\nname = "a"\ntransport = "stdio"\ncommand = "npx a"'
    [server] = servers(text)
    check_mended(text, take_out(text, [server], "why"), {0}, {})
    check_mended(text, call_program(text, server, ("/bin/a",), "why"), set(), {0: ("/bin/a",)})


def test_lines_are_found_whatever_stands_between() -> None:
    first = 'a = [\n  "[x]",\n]\n[t]\nb.c = """\n[no]\n"""\n"d e" = {f = "[[g]]"} # ]\n'
    found = find_lines(first + "[[u]]\nv = 1\n[u.w]\nx = 2\n[[u]]\nv = 3\n")
    assert found.keys == {
        "a": 1, "t": 4, "t.b.c": 5, "t.d e": 8, "u.0": 9, "u.0.v": 10, "u.0.w": 11, "u.0.w.x": 12, "u.1": 13, "u.1.v": 14,
    }  # fmt: skip
    assert [(one.path, one.first, one.last) for one in found.blocks][-1] == ("u.1", 13, 14)
