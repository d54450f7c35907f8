"""The parts of the container runtime that decide by value: versions, frames, ends, limits, progress, sockets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stoker.errors import Refused, WrongUse
from stoker.records import GoodImage
from stoker.supervise.containers.api import choose_api_version, silent
from stoker.supervise.containers.calls import describe_end
from stoker.supervise.containers.images import Layers, PullProgress, check_arch, own_arch, remember_good, split_name
from stoker.supervise.containers.limits import cap_ulimits, parse_limits, read_hard_limits
from stoker.supervise.containers.log import LINE_BYTES, read_time_us, take_frames, take_plain
from stoker.supervise.containers.sockets import find_engines, need_engines
from support import fails


@pytest.mark.parametrize(
    ("newest", "oldest", "spoken"),
    [
        ("1.41", "1.24", "1.41"),  # podman 4.3; docker 20.10 says 1.12
        ("1.52", "1.44", "1.44"),  # docker 29 refuses what is older
        ("1.40", "1.12", "1.40"),
        ("", "", "1.41"),
    ],
)
def test_the_api_is_spoken_in_a_version_that_the_engine_has(newest: str, oldest: str, spoken: str) -> None:
    assert choose_api_version(newest, oldest) == spoken


def frame(text: bytes, stream: int = 1) -> bytes:
    """Returns a frame as engines send it."""
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def test_frames_are_put_together_however_they_were_cut() -> None:
    sent = frame(b"2026-11-22T01:35:01Z a\0b\xff\n") + frame(b"2026-11-22T01:35:01.5Z end", 2) + frame(b"no time")
    at_us = read_time_us(b"2026-11-22T01:35:01Z")
    assert at_us is not None
    for size in (1, 7, len(sent)):
        waiting = bytearray()
        taken: list[tuple[int, bytes]] = []
        for start in range(0, len(sent), size):
            waiting += sent[start : start + size]
            taken += take_frames(waiting)
        assert taken == [(at_us, b"a\0b\xff\n"), (at_us + 500_000, b"end"), (0, b"no time")]
        assert not waiting


def test_lines_of_a_terminal_are_whole_however_they_were_cut() -> None:
    sent = b"2026-11-22T01:35:01Z a\0b\xff\r\n2026-11-22T01:35:01.5Z 10%\r20%\r\nno time\r\n"
    at_us = read_time_us(b"2026-11-22T01:35:01Z")
    assert at_us is not None
    for size in (1, 7, len(sent)):
        waiting = bytearray()
        taken: list[tuple[int, bytes]] = []
        for start in range(0, len(sent), size):
            waiting += sent[start : start + size]
            taken += take_plain(waiting)
        assert taken == [(at_us, b"a\0b\xff\n"), (at_us + 500_000, b"10%\r20%\n"), (0, b"no time\n")]
        assert not waiting


def test_a_line_without_an_end_is_not_kept_for_ever() -> None:
    waiting = bytearray(b"x" * (2 * LINE_BYTES + 5))
    assert [len(text) for _, text in take_plain(waiting)] == [LINE_BYTES, LINE_BYTES]
    assert len(waiting) == 5


# A container that outgrew a limit of its own, in the form that docker's API documents; no docker was asked.
OUT_OF_MEMORY = {
    "State": {
        "Status": "exited", "Running": False, "Paused": False, "Restarting": False, "OOMKilled": True, "Dead": False,
        "Pid": 0, "ExitCode": 137, "Error": "", "FinishedAt": "2026-05-01T10:00:09.2Z",
    }
}  # fmt: skip


def test_an_end_for_want_of_memory_is_told_from_other_kills() -> None:
    assert describe_end(OUT_OF_MEMORY) == "out of memory: the kernel killed it (OOMKilled), killed by SIGKILL"
    killed = {"State": {**OUT_OF_MEMORY["State"], "OOMKilled": False}}
    assert describe_end(killed) == "killed by SIGKILL"
    assert describe_end({"State": {"ExitCode": 1}}) == "exit code 1"
    assert describe_end({"State": {"ExitCode": 255}}) == "exit code 255"


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max processes             32768                32768                processes
Max open files            1024                 524288               files
Max locked memory         8388608              8388608              bytes
"""


def test_no_limit_is_asked_for_that_the_engine_cannot_give() -> None:
    hard = parse_limits(LIMITS)
    assert hard == {"stack": -1, "nproc": 32768, "nofile": 524288, "memlock": 8388608}
    asked = (("memlock", -1), ("nofile", 1_048_576), ("stack", 67108864))
    given = {"nofile": 524288, "nproc": 32768, "memlock": 8388608, "stack": 67108864}
    assert dict(cap_ulimits(asked, hard)) == given
    assert cap_ulimits(asked, {}) == asked
    assert read_hard_limits("/no/such.sock") == {}


# A layer that is here, and one that is fetched and unpacked, in the form that docker's API documents.
LINES = (
    {"status": "Pulling from org/two", "id": "v1"},
    {"status": "Already exists", "progressDetail": {}, "id": "aaa"},
    {"status": "Pulling fs layer", "progressDetail": {}, "id": "bbb"},
    {"status": "Downloading", "progressDetail": {"current": 40, "total": 100}, "progress": "[==>]", "id": "bbb"},
    {"status": "Download complete", "progressDetail": {}, "id": "bbb"},
    {"status": "Extracting", "progressDetail": {"current": 10, "total": 100}, "id": "bbb"},
    {"status": "Pull complete", "progressDetail": {}, "id": "bbb"},
    {"status": "Digest: sha256:00"},
)


def test_progress_is_that_of_all_layers_together() -> None:
    layers = Layers()
    seen = [layers.add(dict(line)) for line in LINES]
    assert seen[0] == PullProgress()
    assert seen[3] == PullProgress(40, 100, 1, 2)
    assert seen[4] == seen[5] == seen[7] == PullProgress(100, 100, 2, 2)
    assert str(seen[3]) == "1 of 2 layers, 0 MiB of 0 MiB known"


def test_an_images_name_is_split_so_that_one_image_is_pulled() -> None:
    digest = "sha256:" + "0" * 64
    assert split_name("docker.io/org/two") == ("docker.io/org/two", "latest")
    assert split_name("localhost:5000/two:v1") == ("localhost:5000/two", "v1")
    assert split_name(f"org/two:v1@{digest}") == ("org/two", digest)


def test_an_image_for_another_processor_is_refused_by_its_rule() -> None:
    check_arch("i", {"s390x", own_arch()})
    with fails(Refused, "i is made for s390x", own_arch(), "rule: arm64-manifest-needed"):
        check_arch("i", {"s390x"})


def test_good_images_are_remembered_once_each_the_newest_first() -> None:
    images = [GoodImage("s", "n", f"sha256:{number}", None, number) for number in range(7)]
    kept: tuple[GoodImage, ...] = ()
    for one in images:
        kept = remember_good(kept, one)
    assert [one.at for one in kept] == [6, 5, 4, 3, 2]
    assert [one.at for one in remember_good(kept, images[4])] == [4, 6, 5, 3, 2]


def test_an_engine_elsewhere_and_none_at_all_are_said_before_anything_is_asked(tmp_path: Path) -> None:
    elsewhere = {"DOCKER_HOST": "tcp://10.0.0.1:2375"}
    assert find_engines(elsewhere) == []
    with fails(WrongUse, "DOCKER_HOST is tcp://10.0.0.1:2375", "unix:///"):
        need_engines(elsewhere)
    with fails(Refused, "no container engine", str(tmp_path / "none.sock")):
        need_engines({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    (tmp_path / "file").touch()
    assert find_engines({"DOCKER_HOST": f"unix://{tmp_path}/file"}) == []
    assert "usermod -aG docker" in str(silent("/var/run/docker.sock", "[Errno 13] Permission denied"))


def test_podmans_socket_of_this_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "podman").mkdir()
    monkeypatch.chdir(tmp_path / "podman")  # a socket's path may not be long
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind("podman.sock")
        found = [api.socket for api in find_engines({"XDG_RUNTIME_DIR": str(tmp_path)})]
    assert str(tmp_path / "podman" / "podman.sock") in found
