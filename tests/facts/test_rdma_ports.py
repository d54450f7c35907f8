"""Ports for RDMA, of a recorded DGX Spark with a cable in its second socket."""

from __future__ import annotations

from pathlib import Path

from stoker.box import RecordedBox
from stoker.facts.machine.network import read_ports

PAIR = Path(__file__).parent.parent / "box" / "spark-pair"


def test_each_socket_shows_as_two_devices_and_those_with_a_cable_are_up() -> None:
    ports = {port.device: port for port in read_ports(RecordedBox(PAIR))}
    assert sorted(ports) == ["roceP2p1s0f0", "roceP2p1s0f1", "rocep1s0f0", "rocep1s0f1"]
    assert [name for name in sorted(ports) if ports[name].is_up] == ["roceP2p1s0f1", "rocep1s0f1"]


def test_a_port_tells_rate_interface_address_and_the_index_of_its_roce_2_address() -> None:
    port = next(port for port in read_ports(RecordedBox(PAIR)) if port.device == "rocep1s0f1")
    assert (port.rate_gbit, port.layer, port.interface, port.mtu) == (200.0, "ethernet", "enp1s0f1np1", 9000)
    assert (port.address, port.gid_index) == ("192.168.100.11", 3)


def test_a_port_without_an_address_has_none_and_is_still_told_by_its_function() -> None:
    port = next(port for port in read_ports(RecordedBox(PAIR)) if port.device == "rocep1s0f0")
    assert (port.is_up, port.address, port.gid_index, port.interface) == (False, None, None, "enp1s0f0np0")


def test_what_the_kernel_does_not_say_is_unknown_and_not_zero(tmp_path: Path) -> None:
    (tmp_path / "root/sys/class/infiniband/mlx5_0/ports/1").mkdir(parents=True)
    (port,) = read_ports(RecordedBox(tmp_path))
    assert (port.is_up, port.rate_gbit, port.mtu, port.layer, port.interface) == (None, None, None, None, None)


def test_a_machine_without_rdma_has_no_ports(tmp_path: Path) -> None:
    assert read_ports(RecordedBox(tmp_path)) == ()


def test_infiniband_has_no_roce_address(tmp_path: Path) -> None:
    place = tmp_path / "root/sys/class/infiniband/mlx5_0/ports/1"
    (place / "gid_attrs/types").mkdir(parents=True)
    (place / "gids").mkdir()
    (place / "gids/0").write_text("fe80:0000:0000:0000:0002:c903:0000:1491\n")
    (place / "gid_attrs/types/0").write_text("IB/RoCE v1\n")
    (place / "link_layer").write_text("InfiniBand\n")
    (place / "state").write_text("4: ACTIVE\n")
    (port,) = read_ports(RecordedBox(tmp_path))
    assert (port.layer, port.is_up, port.gid_index) == ("infiniband", True, None)
