"""What the real systemd makes of our units: it checks them, and it runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from home import wait_for
from launch_samples import HOSTILE_WORDS, make_unit
from real_tools import need, own_systemd, run
from stoker.launch.unit import render_unit
from stoker.records import UnitLaunch

USER = "nobody"
BARE = "[Unit]\nDefaultDependencies=no\n[Service]\nStandardOutput=truncate:{out}\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"argv": ("/bin/echo", *HOSTILE_WORDS)},
        {"kind": "oneshot", "argv": ("/bin/echo", "up"), "stop_argv": ("/bin/echo", "down"), "restart_pause_s": None},
        {"argv": ("/bin/echo",), "keeps_children": True, "final_exit_codes": (2, 3), "start_timeout_s": None},
        {"argv": ("/bin/echo",), "kind": "notify", "description": "100 % \"quoted\" 'words' $HOME; # and more"},
    ],
)
def test_systemd_finds_nothing_wrong_with_a_unit(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = tmp_path / "stoker-coder.service"
    file.write_text(render_unit(make_unit(**changes)))
    said = run(need("systemd-analyze"), "verify", "--man=no", "--recursive-errors=no", file)
    assert str(tmp_path) not in said


def test_a_unit_started_by_systemd_gets_exactly_the_words_and_the_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = 'printf "%s\\0" "$EXTRA" "$@"'
    launch = make_unit(
        argv=("/bin/sh", "-c", script, "sh", *HOSTILE_WORDS), environment=(("EXTRA", " ".join(HOSTILE_WORDS)),),
        kind="oneshot", restart_pause_s=None, user="root", group=None, env_file=None, conditions=(),
        working_directory="/tmp",
    )  # fmt: skip
    _write_units(tmp_path, launch, BARE.format(out=out))
    with own_systemd(tmp_path) as systemd:
        systemd.ctl("start", "stoker-coder.service")
        assert systemd.show("stoker-coder.service", "ActiveState") == "active"
    assert out.read_text().split("\0")[:-1] == [" ".join(HOSTILE_WORDS), *HOSTILE_WORDS]


def test_an_engines_unit_runs_with_its_hardening_and_fails_without_its_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    argv = ("/bin/sh", "-c", "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status; cat /proc/self/oom_score_adj; exec sleep 600")
    out = tmp_path / "out"
    launch = make_unit(argv=argv, user=USER, group=None, env_file=None, conditions=(str(model),), working_directory="/tmp")
    _write_units(tmp_path, launch, BARE.format(out=out))
    with own_systemd(tmp_path) as systemd:
        assert "Assertion failed" in systemd.ctl("start", "stoker-coder.service", code=None)
        model.touch()
        systemd.ctl("start", "stoker-coder.service")
        wait_for("what the program says of itself", lambda: out.exists() and len(out.read_text().split()) == 5)
        systemd.ctl("stop", "stoker-coder.service")
        assert systemd.show("stoker-coder.service", "Result") == "success"
    assert out.read_text().split()[:2] == ["NoNewPrivs:", "1"]
    assert out.read_text().split()[-1] == "500"


def _write_units(folder: Path, launch: UnitLaunch, more: str) -> None:
    (folder / f"{launch.name}.service").write_text(render_unit(launch))
    (folder / f"{launch.name}.service.d").mkdir()
    (folder / f"{launch.name}.service.d" / "test.conf").write_text(more)
