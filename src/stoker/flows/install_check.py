"""Checks that what is installed for a service is what `stoker install` prints today, and that it survives a reboot."""

from __future__ import annotations

import difflib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from stoker.box import LocalBox
from stoker.config import Paths
from stoker.flows.client import find_daemon
from stoker.flows.install import DAEMON, Caller, Installed, plan_install, view_of
from stoker.launch.names import unit_name
from stoker.launch.sudoers import SYSTEM_PATH
from stoker.records import InstallFinding, InstallView, RenderedFile, VerifyView

LINGER = Path("/var/lib/systemd/linger")
ASKED = ("Id", "LoadState", "ActiveState", "UnitFileState", "FragmentPath", "DropInPaths", "NeedDaemonReload")
ALLOWS = " NOPASSWD: "
Findings = Iterator[InstallFinding]


def verify_install(service: str, user: str | None, unit_folder: str) -> VerifyView:
    """Returns what is not as it should be, each with what to do; raises WrongUse or Refused as `stoker install` does."""
    caller = Caller(os.getuid(), dict(os.environ))
    installed = plan_install(service, user, unit_folder, caller)
    view = view_of(installed)
    box, unread = LocalBox(), [file.path for file in view.files if _is_hidden(file)]
    findings = [
        *(found for file in view.files if file.path not in unread for found in _check_file(file)),
        *_check_sudo(box, view, caller),
        *_check_units(box, view),
        *_check_own_unit(box, installed),
        *_check_linger(view.user),
        *_check_daemon(installed, caller),
    ]
    return VerifyView(service, view.user, tuple(findings), tuple(map(_unknown, unread)))


def _unknown(path: str) -> str:
    return f"{path} may be read by root alone: whether it has more lines than it should is not known"


def _is_hidden(file: RenderedFile) -> bool:
    try:
        Path(file.path).read_bytes()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _check_file(file: RenderedFile) -> Findings:
    path, put = Path(file.path), f"`stoker install` prints it with --dry-run: sudo install -m {file.mode} FILE {file.path}"
    if not path.is_file():
        yield InstallFinding(f"{path} is missing", "", put)
        return
    text, found = path.read_text(errors="replace"), path.stat()
    if text != file.text:
        drift = difflib.unified_diff(
            text.splitlines(), file.text.splitlines(), "installed", "as it would be now", lineterm=""
        )
        yield InstallFinding(f"{path} is not what `stoker install --dry-run` prints now", "\n".join(drift), put)
    if (found.st_uid, found.st_gid) != (0, 0):
        why = "whoever owns it can change what root starts, or allows"
        yield InstallFinding(f"{path} belongs to {_name(found.st_uid)}, not to root", why, f"sudo chown root:root {path}")
    if (mode := f"{found.st_mode & 0o7777:04o}") != file.mode:
        yield InstallFinding(f"{path} has the mode {mode}, not {file.mode}", "", f"sudo chmod {file.mode} {path}")
    if file is not None and path.parent.name == "sudoers.d":
        yield from _check_syntax(path)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _check_syntax(path: Path) -> Findings:
    said = LocalBox().try_run(("visudo", "-c", "-f", str(path)), path=f"{SYSTEM_PATH}:/usr/sbin:/sbin")
    if said is not None and said[0] != 0:
        yield InstallFinding(
            f"visudo finds a fault in {path}", said[1].strip(), "sudo ignores that file: put it in place anew"
        )


def _check_sudo(box: LocalBox, view: InstallView, caller: Caller) -> Findings:
    """Asks sudo itself what the user may do, since only root can read the file."""
    other = ("-U", view.user) if _name(caller.uid) != view.user else ()
    said = box.try_run(("sudo", "-n", "-l", *other), path=SYSTEM_PATH)
    printed = " ".join((said[1] if said else "").split())  # long lines are folded
    for line in view.files[-1].text.splitlines():
        allowed = line.partition(ALLOWS)[2]
        if allowed and allowed not in printed:
            yield InstallFinding(
                f"sudo does not let {view.user} run `{allowed}`", "" if said else "sudo is not installed",
                f"put {view.files[-1].path} in place; this line is missing: {line}",
            )  # fmt: skip


def _check_units(box: LocalBox, view: InstallView) -> Findings:
    files = {Path(file.path).name: file for file in view.files[:-1]}
    if not Path("/run/systemd/system").exists():
        yield InstallFinding(
            "there is no systemd here", "/run/systemd/system is missing", "nothing starts at boot without it"
        )
        return
    for name, file in files.items():
        if Path(file.path).is_file():
            yield from _check_unit(_show(box, name), file, name)
    there = tuple(file.path for file in files.values() if Path(file.path).is_file())
    said = box.try_run(("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *there), path=SYSTEM_PATH)
    if there and said is not None and (said[0] != 0 or any(path in said[1] for path in there)):
        yield InstallFinding("systemd-analyze finds a fault in the units", said[1].strip(), "put them in place anew")


def _show(box: LocalBox, unit: str) -> dict[str, str]:
    said = box.try_run(("systemctl", "show", f"--property={','.join(ASKED)}", unit), path=SYSTEM_PATH)
    return dict(line.split("=", 1) for line in (said[1] if said else "").splitlines() if "=" in line)


def _check_unit(said: dict[str, str], file: RenderedFile, name: str) -> Findings:
    reload = "sudo systemctl daemon-reload"
    if said.get("LoadState") != "loaded":
        yield InstallFinding(
            f"systemd calls {name} {said.get('LoadState') or 'unknown'}", "it has not read its file", reload
        )
        return
    if said["FragmentPath"] != file.path:
        why = "one that comes first in systemd's search path hides ours"
        yield InstallFinding(
            f"systemd takes {name} from {said['FragmentPath']}", why, f"remove {said['FragmentPath']}; {reload}"
        )
    if said.get("DropInPaths"):
        why = "they change what the unit says"
        yield InstallFinding(
            f"{name} has drop-ins: {said['DropInPaths']}", why, f"sudo systemctl revert {name}, if they are not meant"
        )
    if said.get("NeedDaemonReload") == "yes":
        yield InstallFinding(f"systemd has not read {name} since it changed", "", reload)
    if name != f"{DAEMON}.service" and said["UnitFileState"] != "enabled":
        why = f"it is {said['UnitFileState'] or 'not enabled'}, so a reboot would not bring the service back"
        yield InstallFinding(f"{name} is not enabled", why, f"sudo systemctl enable {name}")
    if said["ActiveState"] != "active":
        yield InstallFinding(
            f"{name} is {said['ActiveState']}", "", f"sudo systemctl start {name}; journalctl -u {name} says why"
        )


def _check_own_unit(box: LocalBox, installed: Installed) -> Findings:
    """A service that is a unit itself: that one has to be there, and not to start past the wait for memory."""
    unit = installed.own_unit
    if unit is None or not Path("/run/systemd/system").exists():
        return
    said = _show(box, unit)
    if said.get("LoadState") != "loaded":
        yield InstallFinding(f"systemd knows no unit {unit}", "", "put it in place; sudo systemctl daemon-reload")
    if said.get("UnitFileState") == "enabled":
        why = "at boot systemd would start it by itself, before Stoker has seen to the memory"
        yield InstallFinding(
            f"{unit} is enabled", why, f"sudo systemctl disable {unit}; {unit_name(installed.service)} starts it"
        )


def _check_linger(user: str) -> Findings:
    if not (LINGER / user).exists():
        why = "at their last logout logind would delete the shared memory of the engines (RemoveIPC=yes)"
        yield InstallFinding(f"{user} does not linger", why, f"sudo loginctl enable-linger {user}")


def _check_daemon(installed: Installed, caller: Caller) -> Findings:
    paths: Paths = installed.paths
    if caller.uid not in (0, installed.uid):  # its folder is its user's alone
        return
    if find_daemon(paths) is None:
        yield InstallFinding(
            "the daemon does not answer", f"looked for by {paths.address_file}", f"sudo systemctl restart {DAEMON}.service"
        )
