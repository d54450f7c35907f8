"""The file systems that matter, and how fast they read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.box import LocalBox, RecordedBox
from stoker.errors import StokerError
from stoker.facts.machine.details import measure_disks
from stoker.facts.machine.disk import MountPoint, find_mount, parse_mounts, read_disks
from stoker.facts.machine.read_rate import find_largest, measure_file, measure_folder
from stoker.records import GIB, MIB, Disk
from support import BOXES, fails

ROOT = MountPoint("/", "ext4", "/dev/nvme0n1p2")


def test_mounts_are_read_with_their_kind_their_device_and_spaces_in_their_names() -> None:
    mounts = parse_mounts((BOXES / "gb10-128gb/root/proc/self/mountinfo").read_text())
    assert mounts[0] == ROOT
    assert mounts[3:] == [MountPoint("/data sets", "xfs", "/dev/nvme1n1p1"), MountPoint("/mnt/nas", "nfs4", "nas:/models")]


@given(st.text())
def test_no_text_breaks_the_reading_of_mounts(text: str) -> None:
    assert all(isinstance(mount, MountPoint) for mount in parse_mounts(text))


@pytest.mark.parametrize(
    ("path", "at"),
    [("/", "/"), ("/home/me", "/"), ("/data", "/data"), ("/data/models/a", "/data/models"), ("/database", "/")],
)
def test_a_path_lies_on_the_deepest_mount_above_it(path: str, at: str) -> None:
    mounts = [MountPoint(place, "ext4", place) for place in ("/", "/data", "/data/models")]
    assert find_mount(path, mounts) == MountPoint(at, "ext4", at)


def test_what_was_mounted_last_on_a_place_hides_what_was_there() -> None:
    over = MountPoint("/", "overlay", "overlay")
    assert find_mount("/home", [ROOT, over]) == over
    assert find_mount("/home", []) is None


def test_folders_on_one_file_system_are_one_disk_that_names_them() -> None:
    box = RecordedBox(BOXES / "gb10-128gb")
    folders = ["/data sets/models", "/home/me/.cache/huggingface/hub", "/mnt/nas", "/home/me/state", "/home/me/state"]
    assert read_disks(box, folders) == (
        Disk("/data sets", 7901234987008, 4400123904000, "xfs", "/dev/nvme1n1p1", ("/data sets/models",)),
        Disk("/", 3936818806784, 1271310319616, "ext4", "/dev/nvme0n1p2", (folders[1], folders[3])),
        Disk("/mnt/nas", 15802469974016, 9901234987008, "nfs4", "nas:/models", ("/mnt/nas",)),
    )


def test_a_machine_without_mounts_to_read_has_no_disks() -> None:
    assert read_disks(RecordedBox(BOXES / "pc-24gb"), ["/home"]) == ()


def test_this_machines_disks_are_read(tmp_path: Path) -> None:
    [disk] = read_disks(LocalBox(), [str(tmp_path.resolve())])
    assert disk.kind
    assert 0 < disk.free_bytes <= disk.total_bytes


def write_large(file: Path, count: int = 80 * MIB) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(os.urandom(MIB) * (count // MIB))
    return file


def test_a_file_is_read_to_its_end_and_the_rate_is_that_of_the_reading(tmp_path: Path) -> None:
    file = write_large(tmp_path / "model.gguf", 80 * MIB)
    with file.open("ab") as more:
        more.write(b"x" * 1234)  # files do not end where a disk's block does
    rate = measure_file(file, limit_s=60)
    assert rate.read_bytes == 80 * MIB + 1234
    assert rate.bytes_per_s == pytest.approx(rate.read_bytes / rate.seconds, rel=0.2)
    assert rate.path == str(file)


def test_a_measurement_stops_at_its_limit_of_bytes_and_of_time(tmp_path: Path) -> None:
    file = write_large(tmp_path / "model.gguf", 80 * MIB)
    assert measure_file(file, limit_bytes=16 * MIB, limit_s=60).read_bytes == 16 * MIB
    assert measure_file(file, limit_s=0).read_bytes == 0


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system in memory")
def test_a_file_system_in_memory_is_measured_either_way_and_the_result_says_which() -> None:
    file = write_large(Path(f"/dev/shm/stoker-read-rate-{os.getpid()}"))
    try:
        rate = measure_file(file, limit_s=60)
        assert rate.read_bytes == 80 * MIB
        assert rate.direct in (True, False)  # tmpfs refused before Linux 6.6
    finally:
        file.unlink()


def test_where_direct_reading_is_refused_the_file_is_read_all_the_same_and_the_result_says_so() -> None:
    rate = measure_file(Path("/proc/self/status"), limit_s=60)
    assert (rate.direct, rate.read_bytes > 100) == (False, True)


def test_the_largest_file_is_found_where_a_hub_keeps_it(tmp_path: Path) -> None:
    blob = write_large(tmp_path / "models--a--b" / "blobs" / "0123abc", 70 * MIB)
    link = tmp_path / "models--a--b" / "snapshots" / "r" / "model.safetensors"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    write_large(tmp_path / "small.gguf", MIB)
    (tmp_path / "round").symlink_to(tmp_path)
    assert find_largest([tmp_path / "missing", tmp_path]) == blob
    assert find_largest([tmp_path / "models--a--b" / "snapshots"]) is None


def test_holes_in_a_file_are_not_read_as_if_a_disk_had_stored_them(tmp_path: Path) -> None:
    file = tmp_path / "half-downloaded.safetensors"
    with file.open("wb") as sparse:
        sparse.seek(512 * MIB)
        sparse.write(os.urandom(MIB) * 80)
        sparse.truncate(4 * GIB)
    rate = measure_file(file, limit_s=60)
    assert rate.read_bytes == 80 * MIB
    assert find_largest([tmp_path]) == file


def test_a_file_of_holes_is_no_large_file(tmp_path: Path) -> None:
    whole = write_large(tmp_path / "whole.gguf", 70 * MIB)
    with (tmp_path / "sparse.gguf").open("wb") as sparse:
        sparse.truncate(4 * GIB)
    assert find_largest([tmp_path]) == whole
    assert measure_file(tmp_path / "sparse.gguf", limit_s=60).read_bytes == 0


def test_without_a_large_file_one_is_written_measured_and_removed(tmp_path: Path) -> None:
    rate = measure_folder([tmp_path], free_bytes=10 * GIB)
    assert 0 < rate.read_bytes <= 256 * MIB
    assert Path(rate.path).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_nearly_full_disk_is_not_written_to(tmp_path: Path) -> None:
    with fails(StokerError, "no large file to read"):
        measure_folder([tmp_path], free_bytes=GIB)
    [disk] = measure_disks([Disk("/", 2 * GIB, GIB, holds=(str(tmp_path),))])
    assert disk.read_rate is None
    assert "none can be written" in (disk.not_measured or "")
