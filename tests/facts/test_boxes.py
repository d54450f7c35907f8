"""The machines that Stoker ships a record of, and those that `stoker facts --json` writes one of."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from stoker.errors import WrongUse
from stoker.facts.machine.boxes import SHIPPED, box_names, read_box
from stoker.records import GIB, Machine, MachineDetails
from support import fails


@pytest.mark.parametrize("name", [file.stem for file in SHIPPED.glob("*.json")])
def test_every_shipped_record_is_a_machine_and_says_whether_memory_is_shared(name: str) -> None:
    machine = read_box(name)
    assert machine.details is None
    assert (machine.unified_memory is None) == (machine.gpus == ())
    assert machine.memory.free_bytes <= machine.memory.available_bytes <= machine.memory.total_bytes


def test_the_shipped_machines_differ_as_their_kinds_do() -> None:
    assert [read_box(name).unified_memory for name in ("gb10", "gb10-64", "h200", "pc")] == [True, True, False, None]
    assert read_box("gb10").memory.total_bytes > 1.9 * read_box("gb10-64").memory.total_bytes > 110 * GIB
    assert read_box("h200").gpus[0].memory_total_bytes == 143771 * 1024**2
    assert {name: read_box(name).gpus[0].compute_capability for name in ("gb10", "h200")} == {"gb10": "12.1", "h200": "9.0"}


def test_this_machine_is_read_anew() -> None:
    assert read_box("this").memory.total_bytes > 0
    assert box_names()[0] == "this"


def test_what_facts_writes_is_read_back_with_its_details(tmp_path: Path) -> None:
    machine = msgspec.structs.replace(read_box("gb10"), details=MachineDetails(), cuda_visible_bytes=119 * GIB)
    file = tmp_path / "mine.json"
    file.write_bytes(msgspec.json.encode(machine))
    assert read_box(str(file)) == machine


def test_a_record_from_before_these_facts_is_still_a_machine(tmp_path: Path) -> None:
    tree = msgspec.json.decode((SHIPPED / "gb10.json").read_bytes())
    for name in ("unified_memory", "product"):
        del tree[name]
    del tree["gpus"][0]["sm_clock_max_mhz"]
    file = tmp_path / "old.json"
    file.write_bytes(msgspec.json.encode(tree))
    assert isinstance(read_box(str(file)), Machine)
    assert read_box(str(file)).unified_memory is None


def test_a_machine_that_is_not_known_is_answered_with_those_that_are(tmp_path: Path) -> None:
    with fails(WrongUse, "no machine called `gb11`", "gb10-64"):
        read_box("gb11")
    file = tmp_path / "broken.json"
    file.write_text('{"hostname": 3}')
    with fails(WrongUse, "does not describe a machine", "hostname"):
        read_box(str(file))


@pytest.mark.parametrize("memory", [{"total_bytes": 0}, {"total_bytes": -1}, {"available_bytes": 2**60}])
def test_a_machine_whose_memory_cannot_be_is_refused(tmp_path: Path, memory: dict[str, int]) -> None:
    tree = json.loads((SHIPPED / "gb10.json").read_text())
    tree["memory"] |= memory
    (tmp_path / "odd.json").write_text(json.dumps(tree))
    with fails(WrongUse, "does not describe a machine"):
        read_box(str(tmp_path / "odd.json"))


def test_a_device_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("/dev/zero", str(tmp_path / "pipe.json")):
        with fails(WrongUse, "does not describe a machine", "no ordinary file"):
            read_box(name)
