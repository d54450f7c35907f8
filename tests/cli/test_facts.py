"""`stoker facts`: what a person and a program are told of the machine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from home import Home
from recorded_nvml import recorded_nvml
from stoker.box import RecordedBox
from stoker.cli.facts_text import facts_text
from stoker.facts.machine.details import read_details
from stoker.facts.machine.nvidia import read_gpu_processes, read_nvidia
from stoker.facts.machine.read import read_machine
from stoker.records import Disk, Environment, Listener, Machine, MachineDetails, ReadRate
from support import BOXES

RUNTIMES = ("io.containerd.runc.v2", "nvidia", "runc")


def recorded_machine(name: str) -> Machine:
    """Returns a recorded machine with its details."""
    box, library = RecordedBox(BOXES / name), recorded_nvml(name)
    details = read_details(box, ["/", "/data sets"], lambda: read_gpu_processes(library))
    return msgspec.structs.replace(read_machine(box, "/", lambda: read_nvidia(library)), details=details)


def test_a_gb10s_facts_are_shown_with_its_unknowns() -> None:
    text = facts_text(recorded_machine("gb10-128gb"))
    for line in (
        "system      Ubuntu 24.04.3 LTS, NVIDIA DGX Spark, 7.3.1",
        "product     NVIDIA_DGX_Spark, firmware 5.36_0ACUM018",
        "memory      113.1 GiB available of 121.7 GiB, shared with the GPU",
        "            CUDA sees - (--measure asks it)",
        "gpu         NVIDIA GB10, SM 12.1, memory -",
        "            clock 2418 MHz of 3003 MHz, busy 94 %, 71 C",
        "            power 47 W, limit -, - by default; slowed by: nothing",
        f"containers  docker 28.5.1, answers, runtimes {', '.join(RUNTIMES)}, storage overlay2, offers NVIDIA's GPUs",
        "gpu memory  83.5 GiB of GPU 0 by - (pid 4999999)",
        "            - of GPU 0 by - (pid 4999998)",
    ):
        assert line in text.splitlines()


def test_a_card_with_memory_of_its_own_is_shown_with_what_is_used() -> None:
    lines = facts_text(recorded_machine("pc-ada")).splitlines()
    assert "gpu         NVIDIA GeForce RTX 4090, SM 8.9, 19.7 GiB used of 24.0 GiB" in lines
    assert "            power 399 W, limit 400 W, 450 W by default; slowed by: the power limit" in lines
    assert any(line.endswith("the GPU has its own") for line in lines)
    assert "containers  neither docker nor podman" in lines


def test_measured_and_unmeasured_disks_and_many_ports_are_told_apart() -> None:
    rate = ReadRate(3 * 1024**3, 1024**3, 0.333, direct=False, path="/m/a.gguf")
    disks = (
        Disk("/m", 100, 50, "tmpfs", "tmpfs", ("/m",), rate),
        Disk("/n", 100, 50, None, None, ("/n",), None, "there is no large file to read"),
    )
    details = MachineDetails(
        disks=disks,
        listeners=tuple(Listener("127.0.0.1", port, None, None) for port in range(20)),
        environments=(Environment("venv", "/v", "vllm", "0.26.0", "13.0", None, torch="2.9.0"),),
    )
    text = facts_text(msgspec.structs.replace(recorded_machine("h200"), details=details))
    assert "reads 3.0 GiB/s: 1.0 GiB in 0.33 s, through the page cache, which may have helped" in text
    assert "reads -: there is no large file to read" in text
    assert "and 8 more; --json lists all" in text
    assert "venv        /v: vllm 0.26.0, architecture -, CUDA 13.0, torch 2.9.0" in text


def test_what_other_programs_are_called_cannot_drive_the_terminal() -> None:
    machine = msgspec.structs.replace(
        recorded_machine("h200"), details=MachineDetails(listeners=(Listener("::", 1, 2, "\x1b[2J"),))
    )
    text = facts_text(machine)
    assert "\x1b" not in text
    assert "listens     [::]:1 [2J (pid 2)" in text.splitlines()


def test_the_json_is_a_machine_that_plan_and_lint_take(home: Home) -> None:
    printed = home.run("facts", "--json").stdout
    machine = msgspec.json.decode(printed, type=Machine)
    assert machine.details is not None
    assert any(str(home.folder).startswith(disk.path) for disk in machine.details.disks)
    assert all(disk.read_rate is None for disk in machine.details.disks)


def test_measuring_reads_the_disk_of_a_folder_that_was_named(home: Home) -> None:
    folder = home.folder / "models"
    folder.mkdir()
    machine = home.json("facts", "--measure", str(folder))
    [disk] = [disk for disk in machine["details"]["disks"] if str(folder) in disk["holds"]]
    assert disk["read_rate"]["bytes_per_s"] > 0
    assert list(folder.iterdir()) == []


def test_a_folder_an_image_and_an_environment_that_are_not_there_are_named(home: Home) -> None:
    assert "there is no folder /no/such" in home.run("facts", "/no/such", code=2).stderr
    assert "is no virtual environment" in home.run("facts", "--venv", "/proc", code=2).stderr
    said = home.run("facts", "--image", "no/such:image", code=2).stderr
    assert "there is no image `no/such:image` on this machine" in said


def test_a_broken_configuration_changes_nothing_about_the_machine(home: Home) -> None:
    home.configure('[service.coder]\nmodell = "x.gguf"')
    assert "available of" in home.run("facts").stdout


def test_the_folders_of_the_services_models_are_among_the_disks(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    home.configure(f'[service.coder]\nmodel = "{folder}/x.gguf"')
    disks = home.json("facts")["details"]["disks"]
    assert str(folder) in [held for disk in disks for held in disk["holds"]]
