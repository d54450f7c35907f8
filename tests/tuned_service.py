"""A service of the demo model that is tuned, what its table says, and what is read of a tuning."""

from __future__ import annotations

import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

from home import Home
from stoker.records import Way
from stoker.store.services import read_saved
from support import DEMO

MEASURE_S = 1
QUICK = ("--pp", "64", "--tg", "48", "--measure", f"{MEASURE_S}s", "--precision", "20%")
OFF = f"""
# the demo model, as a service of ours
[service.coder]
model = "{DEMO}"
reasoning = "off"
speculation = "off"   # nobody tuned it yet
"""
# A draft as large as its model is right each time and cannot pay: without it the same tokens come with less work.
SELF = f"""
[service.coder]
model = "{DEMO}"
reasoning = "off"
speculation = "draft"
draft = "{DEMO}"   # by mistake
draft_tokens = 4
"""
# A llama-server of the user's: the real engine, but for what a test wants to happen to it.
SERVER = """#!{python}
import os, sys
if "--version" in sys.argv:
    print("version: 11549 (0000000)")
    raise SystemExit
words, known = [], {{"--load-mode"}}
given = iter(sys.argv[1:])
for word in given:
    if word in known:
        next(given)
    else:
        words.append(word)
{happens}
os.execv({python!r}, [{python!r}, "-P", "-m", "stoker.embedded", *words])
"""


def configure(home: Home, table: str, limits: str = "") -> str:
    """Writes stoker.toml and returns what it says."""
    home.configure(table, limits=limits)
    return home.paths.config.read_text()


def write_server(home: Home, happens: str) -> Path:
    """Writes a llama-server to which something happens."""
    file = home.folder / "llama-server"
    file.write_text(SERVER.format(python=sys.executable, happens=happens))
    file.chmod(stat.S_IRWXU)
    return file


def coder_table(home: Home) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(home.paths.config.read_text())["service"]["coder"]
    return table


def good_plans(home: Home) -> list[str]:
    """The plans that `rollback` may lead to, the last one last."""
    [saved] = [one for one in read_saved(home.paths.database) if one.plan.service == "coder"]
    return [plan.plan_id for plan in saved.good]


def by_name(view: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The ways of a view by their names."""
    return {name_of(one["way"]): one for one in view["ways"]}


def name_of(way: dict[str, Any]) -> str:
    return Way(**way).name
