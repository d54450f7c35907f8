"""Two DGX Sparks with a cable between them, as planning sees them: the recorded ports of `tests/box/spark-pair`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stoker.box import RecordedBox
from stoker.facts.machine.boxes import read_box
from stoker.facts.machine.network import read_ports
from stoker.records import Machine
from stoker.records.machine import NetworkPort

FOLDER = Path(__file__).parent / "box" / "spark-pair"


def spark(last: int, base: Machine | None = None) -> Machine:
    """Returns one Spark; its addresses end in `last`."""
    ports = tuple(_with_address(port, last) for port in read_ports(RecordedBox(FOLDER)))
    return msgspec.structs.replace(base or read_box("gb10"), hostname=f"spark-{last}", ports=ports)


def _with_address(port: NetworkPort, last: int) -> NetworkPort:
    if port.address is None:
        return port
    return msgspec.structs.replace(port, address=f"{port.address.rpartition('.')[0]}.{last}")


def write_facts(folder: Path, **boxes: Machine) -> None:
    """Writes what `stoker facts --json` said on each, where a service's `boxes` are looked for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, machine in boxes.items():
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(machine))
