"""What the real sudo allows by our file: exactly the lines in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from real_tools import need, need_root, run
from stoker.launch.names import sudoers_file_name
from stoker.launch.sudoers import render_sudoers

USER = "nobody"
SYSTEMCTL = "/usr/bin/systemctl"
NEAR = (
    f"{SYSTEMCTL}", f"{SYSTEMCTL} start", f"{SYSTEMCTL} start stoker-other.service", f"{SYSTEMCTL} start stoker-coder",
    f"{SYSTEMCTL} start stoker-coder.service ssh.service", f"{SYSTEMCTL} start stoker-coder.service,ssh.service",
    f"{SYSTEMCTL} --no-block start stoker-coder.service", f"{SYSTEMCTL} status stoker-coder.service",
    f"{SYSTEMCTL} edit stoker-coder.service", f"{SYSTEMCTL} kill stoker-coder.service", f"{SYSTEMCTL} daemon-reload",
    f"{SYSTEMCTL} start stoker-qwen3x6.service", f"{SYSTEMCTL} start *", f"{SYSTEMCTL} poweroff", "/bin/sh",
    "/usr/bin/env start stoker-coder.service",
)  # fmt: skip


def test_sudo_understands_the_file_and_allows_exactly_these_commands(tmp_path: Path) -> None:
    services = ("coder", "qwen3.6", "my_model")
    sudo = Sudo(tmp_path, "coder", render_sudoers(USER, services))
    wanted = {f"{SYSTEMCTL} {action} stoker-{name}.service" for action in ("start", "stop", "restart") for name in services}
    assert sudo.allowed() == {f"(root) NOPASSWD: {command}" for command in wanted}
    assert all(sudo.allows(*command.split()) for command in wanted)


@pytest.mark.parametrize("command", NEAR)
def test_sudo_allows_nothing_that_comes_near(tmp_path: Path, command: str) -> None:
    sudo = Sudo(tmp_path, "coder", render_sudoers(USER, ("coder", "qwen3.6")))
    assert sudo.allows(SYSTEMCTL, "start", "stoker-coder.service")
    assert not sudo.allows(*command.split())


def test_sudo_reads_the_file_of_a_service_with_a_dot_in_its_name(tmp_path: Path) -> None:
    sudo = Sudo(tmp_path, "qwen3.6", render_sudoers(USER, ("qwen3.6",)))
    assert sudo.allows(SYSTEMCTL, "restart", "stoker-qwen3.6.service")


class Sudo:
    """The real sudo, which sees a /etc/sudoers.d with one file of ours in it; the machine's own stays as it is."""

    def __init__(self, folder: Path, service: str, text: str) -> None:
        need_root()
        if not Path(SYSTEMCTL).exists():
            need("systemctl")
        self._folder = folder / "sudoers.d"
        self._folder.mkdir()
        file = self._folder / sudoers_file_name(service)
        file.write_text(text)
        file.chmod(0o440)
        assert "parsed OK" in run(need("visudo"), "-c", "-s", "-f", file)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        script = 'mount --bind "$1" /etc/sudoers.d && shift && exec "$@"'
        argv = ("unshare", "--mount", "sh", "-c", script, "sh", str(self._folder), need("sudo"), "-l", "-U", USER, *words)
        return subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})

    def allowed(self) -> set[str]:
        """Returns what `sudo -l` says the user may do."""
        said = self._run()
        assert said.returncode == 0, said.stderr
        return {line.strip() for line in said.stdout.partition("may run the following")[2].splitlines()[1:] if line.strip()}

    def allows(self, *command: str) -> bool:
        """Tells whether the user may run exactly this."""
        return self._run(*command).returncode == 0
