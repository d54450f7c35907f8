"""The real npx and npm of `make test-clients`: a package that is looked up at each start, and one installed for good."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from home import Home

PYTHON = os.environ.get("STOKER_CLIENTS", "")
SERVER = """\
#!/usr/bin/env node
const tools = [{ name: 'balance', inputSchema: { type: 'object' } }]
const answers = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'wallet', version: '1' },
  }),
  'tools/list': () => ({ tools }),
}
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method](params) }))
})
"""
pytestmark = pytest.mark.elsewhere(bool(PYTHON), "the clients of `make test-clients`")


def write_package(folder: Path) -> Path:
    """Writes a package whose program is called otherwise than itself, as many are."""
    folder.mkdir()
    (folder / "package.json").write_text(
        json.dumps({"name": "@house/mcp", "version": "1.0.0", "bin": {"wallet": "server.js"}})
    )
    (folder / "server.js").write_text(SERVER)
    (folder / "server.js").chmod(0o755)
    return folder


def write_settings(home: Home, package: str) -> Path:
    """Writes Vibe's settings with one server that npx starts."""
    file = home.folder / ".vibe" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'[[mcp_servers]]\nname = "wallet"\ntransport = "stdio"\ncommand = "npx"\nargs = ["-y", "{package}"]\n')
    return file


@pytest.fixture
def node(home: Home) -> Home:
    """A Stoker whose user has node, with a folder of their own for installed programs."""
    home.environment.pop("VIBE_HOME", None)
    home.environment |= {
        "HOME": str(home.folder), "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}",
        "npm_config_prefix": str(home.folder / "installed"), "npm_config_offline": "true",
    }  # fmt: skip
    return home


def test_what_npx_looks_up_at_each_start_is_tried_and_timed(node: Home) -> None:
    package = write_package(node.folder / "package")
    write_settings(node, str(package))
    told = json.loads(node.run("clients", "check", "vibe", "--json", code=1).stdout)
    assert [one["rule"] for one in told["findings"]] == ["vibe-mcp-npx-startup"]
    [start] = told["starts"]
    assert (start["tools"], start["why"]) == (1, "")
    assert start["ready_s"] > 0


def test_the_program_that_npm_installed_is_called_in_its_place(node: Home) -> None:
    package = write_package(node.folder / "package")
    file = write_settings(node, "@house/mcp@1.0.0")
    said = node.run("clients", "check", "vibe", "--no-start", code=1).stdout
    assert "`npm install -g @house/mcp@1.0.0` installs it once" in said
    npm = [str(Path(PYTHON).with_name("npm")), "install", "--global", str(package)]
    subprocess.run(npm, env=node.environment, check=True, capture_output=True, timeout=120)
    told = json.loads(node.run("clients", "check", "vibe", "--mend", "--json").stdout)
    assert [one["tools"] for one in told["starts"]] == [1]
    [entry] = tomllib.loads(file.read_text())["mcp_servers"]
    assert (entry["command"], entry["args"]) == (str(node.folder / "installed" / "bin" / "wallet"), [])
