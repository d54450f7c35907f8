"""Engine processes, with real ones: found by marker and by session, told apart, waited for and ended for certain."""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from home import wait_for
from stoker.box import is_running
from stoker.facts.machine.started import read_kin
from stoker.launch.process import MARKER_VARIABLE
from stoker.records import Handle, LaunchSpec
from stoker.supervise.held import read_resident
from stoker.supervise.process import (
    SERVERS_SHARE,
    EngineProcess,
    Group,
    _signal_leaders_group,
    find_adopted,
    find_marked,
    read_boot_id,
    read_group_memory,
    read_start_ticks,
    signal_all,
    start_engine,
    stop_group,
)
from stoker.supervise.segments import read_segments

PROGRAM = str(Path(__file__).with_name("engine_child.py"))
GRACE_S, LONG_GRACE_S, KILL_LIMIT_S = 0.2, 30.0, 10.0


class Engines:
    """Starts engines under one test's marker, and leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = f"{folder.name}-{os.getpid()}/"
        self.started: list[EngineProcess] = []

    def start(self, *words: str, secrets: dict[str, str] | None = None) -> EngineProcess:
        environment = {MARKER_VARIABLE: f"{self.marker}small/1", "PATH": os.environ["PATH"]}
        spec = LaunchSpec((sys.executable, PROGRAM, *words), tuple(environment.items()), "/health", None)
        engine = start_engine(spec, secrets or {}, self.log)
        self.started.append(engine)
        return engine

    @property
    def log(self) -> Path:
        return self.folder / "logs" / "engine.log"

    def await_word(self, word: str) -> None:
        wait_for(f"the engine to say {word}", lambda: self.log.exists() and word in self.log.read_text())

    def group(self, engine: EngineProcess | None = None) -> Group:
        return Group(f"{self.marker}small/", engine.pid if engine else None)

    def end(self) -> None:
        for engine in self.started:
            with suppress(OSError):
                os.killpg(engine.pid, signal.SIGKILL)
            signal_all(self.group(engine).pids(), signal.SIGKILL)
            asyncio.run(engine.wait())
            engine.close()


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[Engines]:
    engines = Engines(tmp_path)
    yield engines
    engines.end()


def test_an_engine_runs_in_a_session_of_its_own_and_prints_to_its_log(engines: Engines) -> None:
    engine = engines.start("say=hello")
    engines.await_word("hello\nready\n")
    assert os.getsid(engine.pid) == engine.pid
    assert Path(f"/proc/{engine.pid}/cwd").readlink() == Path("/")


class Seen(NamedTuple):
    pid: int
    children: list[int]


def start_and_see(engines: Engines, *words: str) -> Seen:
    engine = engines.start(*words)
    engines.await_word("ready")
    return Seen(engine.pid, [child.pid for child in psutil.Process(engine.pid).children(recursive=True)])


def test_the_kernel_kills_an_engine_before_the_daemon(engines: Engines) -> None:
    seen = start_and_see(engines, "child")
    assert Path(f"/proc/{seen.pid}/oom_score_adj").read_text().strip() == "500"
    assert Path(f"/proc/{seen.children[0]}/oom_score_adj").read_text().strip() == "500"


def test_an_engine_gets_exactly_the_environment_of_its_launch_and_its_secret(engines: Engines) -> None:
    engine = engines.start("environment", secrets={"ENGINE_KEY": "hush"})
    engines.await_word("ready")
    assert "'ENGINE_KEY', 'hush'" in engines.log.read_text()
    names = {word.split(b"=")[0] for word in Path(f"/proc/{engine.pid}/environ").read_bytes().split(b"\0") if word}
    assert names == {b"ENGINE_KEY", MARKER_VARIABLE.encode(), b"PATH"}
    assert b"hush" not in Path(f"/proc/{engine.pid}/cmdline").read_bytes()


def test_a_program_that_is_not_there_is_an_error(engines: Engines) -> None:
    with pytest.raises(FileNotFoundError):
        start_engine(LaunchSpec(("/no/such/engine",), (), "/", None), {}, engines.folder / "x.log")


@pytest.mark.parametrize("child", ["child", "setsid-child", "clean-child"])
def test_a_child_is_found_by_its_marker_or_by_its_session(engines: Engines, child: str) -> None:
    seen = start_and_see(engines, child)
    assert len(seen.children) == 1
    engine = engines.started[0]
    assert set(engines.group(engine).pids()) == {seen.pid, *seen.children}
    by_marker = {pid for pid, _ in find_marked(engines.marker)}
    assert by_marker == ({seen.pid} if child == "clean-child" else {seen.pid, *seen.children})


def test_a_child_that_hides_its_marker_is_ended_by_that_of_another_after_their_leader_died(engines: Engines) -> None:
    seen = start_and_see(engines, "child", "clean-child")
    os.kill(seen.pid, signal.SIGKILL)
    asyncio.run(engines.started[0].wait())
    assert engines.group().pids() == sorted(seen.children)
    assert asyncio.run(stop_group(engines.group(), GRACE_S, KILL_LIMIT_S)) == []
    assert [read_start_ticks(pid) for pid in seen.children] == [None, None]


def test_a_marker_is_told_whole_and_other_markers_are_left_alone(engines: Engines) -> None:
    start_and_see(engines)
    assert [marker for _, marker in find_marked(engines.marker)] == [f"{engines.marker}small/1"]
    assert list(find_marked(engines.marker + "smal/")) == []
    assert Group(f"{engines.marker}other/").pids() == []


def test_children_of_all_kinds_end_with_their_engine(engines: Engines) -> None:
    seen = start_and_see(engines, "child", "setsid-child", "clean-child")
    assert len(seen.children) == 3
    group = engines.group(engines.started[0])
    assert asyncio.run(stop_group(group, LONG_GRACE_S, KILL_LIMIT_S)) == []
    assert [pid for pid in (seen.pid, *seen.children) if read_start_ticks(pid) is not None] == []


def test_orphans_are_ended_though_their_engine_is_gone(engines: Engines) -> None:
    seen = start_and_see(engines, "child", "setsid-child", "clean-child")
    os.kill(seen.pid, signal.SIGKILL)
    assert asyncio.run(engines.started[0].wait()) == "killed by SIGKILL"
    assert set(engines.group(engines.started[0]).pids()) == set(seen.children)
    assert asyncio.run(stop_group(engines.group(engines.started[0]), LONG_GRACE_S, KILL_LIMIT_S)) == []
    assert [pid for pid in seen.children if read_start_ticks(pid) is not None] == []


def test_one_that_ignores_sigterm_is_killed_after_its_grace(engines: Engines) -> None:
    seen = start_and_see(engines, "ignore-term")
    assert asyncio.run(stop_group(engines.group(engines.started[0]), GRACE_S, KILL_LIMIT_S)) == []
    assert read_start_ticks(seen.pid) is None
    assert asyncio.run(engines.started[0].wait()) == "killed by SIGKILL"


def test_one_that_obeys_sigterm_is_not_killed(engines: Engines) -> None:
    start_and_see(engines)
    assert asyncio.run(stop_group(engines.group(engines.started[0]), LONG_GRACE_S, KILL_LIMIT_S)) == []
    assert asyncio.run(engines.started[0].wait()) == "killed by SIGTERM"


def test_a_worker_is_left_to_its_server_which_ends_it_itself(engines: Engines) -> None:
    start_and_see(engines, "worker")
    engines.await_word("up")
    assert asyncio.run(stop_group(engines.group(engines.started[0]), LONG_GRACE_S, KILL_LIMIT_S, SERVERS_SHARE)) == []
    assert engines.log.read_text().splitlines()[2:] == ["server was told", "worker ended", "server ended"]
    assert asyncio.run(engines.started[0].wait()) == "exit code 0"


def test_a_worker_whose_server_does_nothing_is_told_itself_before_it_is_killed(engines: Engines) -> None:
    seen = start_and_see(engines, "worker", "ignore-term")
    engines.await_word("up")
    assert asyncio.run(stop_group(engines.group(engines.started[0]), 10 * GRACE_S, KILL_LIMIT_S, SERVERS_SHARE)) == []
    assert engines.log.read_text().splitlines()[2:] == ["worker was signalled"]
    assert [pid for pid in (seen.pid, *seen.children) if read_start_ticks(pid) is not None] == []


def test_a_server_is_told_once(engines: Engines) -> None:
    start_and_see(engines, "count-term", "child")
    assert asyncio.run(stop_group(engines.group(engines.started[0]), 5 * GRACE_S, KILL_LIMIT_S, SERVERS_SHARE)) == []
    assert engines.log.read_text().splitlines() == ["ready", "told"]


@pytest.mark.parametrize("session", [True, False])
def test_the_workers_of_a_server_that_has_ended_are_told_at_once(engines: Engines, session: bool) -> None:
    start_and_see(engines, "child")
    group = engines.group(engines.started[0] if session else None)
    stopping = stop_group(group, LONG_GRACE_S, KILL_LIMIT_S, SERVERS_SHARE)
    assert asyncio.run(asyncio.wait_for(stopping, LONG_GRACE_S * SERVERS_SHARE / 2)) == []


def test_where_no_server_has_a_share_all_are_told_at_once(engines: Engines) -> None:
    start_and_see(engines, "child", "end-after-child")
    stopping = stop_group(engines.group(engines.started[0]), LONG_GRACE_S, KILL_LIMIT_S)
    assert asyncio.run(asyncio.wait_for(stopping, LONG_GRACE_S * SERVERS_SHARE / 2)) == []
    assert asyncio.run(engines.started[0].wait()) == "exit code 0"


@pytest.mark.parametrize("kind", ["storm", "relay"])
def test_a_storm_of_forks_leaves_nothing(engines: Engines, kind: str) -> None:
    engine = engines.start(kind)
    engines.await_word("ready")
    assert asyncio.run(stop_group(engines.group(engine), GRACE_S, KILL_LIMIT_S)) == []
    for _ in range(50):
        assert engines.group(engine).pids() == []


def test_the_shared_memory_of_a_killed_engine_is_given_back_unless_another_uses_it(engines: Engines) -> None:
    name = f"{os.getpid()}-{engines.folder.name}"
    start_and_see(engines, f"share={name}-alone", f"share={name}-both", "ignore-term")
    alone, both = Path(f"/dev/shm/psm_{name}-alone"), Path(f"/dev/shm/psm_{name}-both")
    assert alone.exists()
    with both.open("r+b") as file, mmap.mmap(file.fileno(), 4096):
        assert asyncio.run(stop_group(engines.group(engines.started[0]), 0, KILL_LIMIT_S)) == []
        assert (alone.exists(), both.exists()) == (False, True)
    both.unlink()


def test_another_launchs_processes_are_not_touched(engines: Engines) -> None:
    other = start_and_see(engines, "child")
    stranger = Group("nobody/", None)
    assert asyncio.run(stop_group(stranger, GRACE_S, KILL_LIMIT_S)) == []
    assert read_start_ticks(other.pid) is not None


def test_a_process_group_that_took_over_a_pid_is_not_killed(engines: Engines) -> None:
    for _ in range(100):  # one in twenty is met while it becomes its program and has no environment
        stranger = subprocess.Popen(("sleep", "60"), process_group=0)
        _signal_leaders_group(Group("ended/long-ago/", stranger.pid), signal.SIGKILL)
        stranger.terminate()  # after a SIGKILL it comes too late
        assert stranger.wait() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (("exit=0",), "exit code 0"), (("exit=7",), "exit code 7"), ((f"signal={signal.SIGSEGV}",), "killed by SIGSEGV"),
        ((f"signal={signal.SIGKILL}",), "killed by SIGKILL"), (("signal=40",), "killed by signal 40"),
    ],
)  # fmt: skip
def test_how_an_engine_ended_is_told(engines: Engines, words: tuple[str, ...], how: str) -> None:
    assert asyncio.run(engines.start(*words).wait()) == how


def test_an_end_can_be_asked_for_again_and_closing_twice_closes_nothing_else(engines: Engines) -> None:
    engine = engines.start("exit=3")
    assert asyncio.run(engine.wait()) == "exit code 3"
    assert asyncio.run(engine.wait()) == "exit code 3"
    pidfd = engine._pidfd
    engine.close()
    reused = os.open("/dev/null", os.O_RDONLY)
    assert reused == pidfd
    engine.close()
    os.close(reused)
    engines.started.remove(engine)


def test_the_start_time_tells_a_process_from_a_later_one_with_its_pid(engines: Engines) -> None:
    pid = start_and_see(engines).pid
    ticks, boot = read_start_ticks(pid), read_boot_id()
    handle = Handle(1, f"{engines.marker}small/1", pid, ticks, boot, 8000, 0)
    found = find_adopted(handle)
    assert found is not None
    assert found.pid == pid
    found.close()
    assert ticks is not None
    for wrong in (
        Handle(1, "m", pid, ticks + 1, boot, 8000, 0), Handle(1, "m", pid, None, boot, 8000, 0),
        Handle(1, "m", pid, ticks, "another boot", 8000, 0), Handle(1, "m", None, ticks, boot, 8000, 0),
    ):  # fmt: skip
        assert find_adopted(wrong) is None


def test_an_engine_that_ended_is_not_adopted(engines: Engines) -> None:
    pid = start_and_see(engines).pid
    handle = Handle(1, "m", pid, read_start_ticks(pid), read_boot_id(), 8000, 0)
    os.kill(pid, signal.SIGKILL)
    asyncio.run(engines.started[0].wait())
    assert find_adopted(handle) is None


def test_an_adopted_engines_end_is_seen_though_it_is_not_our_child(engines: Engines) -> None:
    seen = start_and_see(engines, "child")
    adopted = EngineProcess(seen.children[0])
    os.kill(seen.children[0], signal.SIGKILL)
    assert asyncio.run(adopted.wait()) == "ended"
    adopted.close()


def test_a_zombie_is_not_living(engines: Engines) -> None:
    seen = start_and_see(engines, "zombie")
    zombie = int(engines.log.read_text().split()[0])
    assert psutil.Process(zombie).status() == psutil.STATUS_ZOMBIE
    assert read_start_ticks(zombie) is None
    assert engines.group(engines.started[0]).pids() == [seen.pid]
    assert os.getsid(zombie) == seen.pid


def test_an_engine_that_died_and_was_not_waited_for_counts_as_gone(engines: Engines) -> None:
    engine = engines.start("exit=1")
    os.waitid(os.P_PID, engine.pid, os.WEXITED | os.WNOWAIT)
    assert engines.group(engine).pids() == []
    assert asyncio.run(stop_group(engines.group(engine), LONG_GRACE_S, KILL_LIMIT_S)) == []


def test_a_pid_that_nobody_has_has_no_start() -> None:
    assert read_start_ticks(2**22 + 5) is None
    assert read_start_ticks(os.getpid()) is not None


def test_the_memory_of_a_launch_is_that_of_all_its_processes(engines: Engines) -> None:
    seen = start_and_see(engines, "child")
    group = engines.group(engines.started[0])
    both = read_group_memory(group)
    alone = psutil.Process(seen.pid).memory_info().rss
    assert both is not None
    assert both > alone
    assert read_group_memory(Group("nobody/")) is None


def test_signals_to_those_who_left_are_no_error(engines: Engines) -> None:
    engine = engines.start("exit=0")
    asyncio.run(engine.wait())
    signal_all([engine.pid, 2**22 + 5], signal.SIGTERM)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose name the kernel cuts within a letter, and that has a file open whose name is no UTF-8."""
    program = tmp_path / "модельсервер"
    program.symlink_to(sys.executable)
    file = os.fsencode(tmp_path) + b"/M\xfcller.pdf"
    code = (
        "import mmap, sys; f = open(sys.argv[1], 'wb+'); f.write(b'x' * 4096); f.flush(); "
        "m = mmap.mmap(f.fileno(), 4096); print('up', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([str(program), "-c", code, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
        process.communicate()


def test_names_that_are_no_utf8_hide_nobody(odd: subprocess.Popen[bytes]) -> None:
    with pytest.raises(UnicodeDecodeError):
        Path(f"/proc/{odd.pid}/comm").read_text()
    assert is_running(odd.pid)
    assert read_start_ticks(odd.pid) is not None
    assert read_segments([odd.pid]) == set()
    assert read_resident([odd.pid])
    assert read_kin(os.getpid())
