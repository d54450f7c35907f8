"""What connects two boxes, from the ports of both."""

from __future__ import annotations

import msgspec
from known import GB10, H200

from pair_of_sparks import spark
from stoker.plan.spread.linking import link_of
from stoker.records import Machine

A, B = spark(11), spark(12)


def without_cable(machine: Machine) -> Machine:
    ports = tuple(msgspec.structs.replace(port, is_up=False) for port in machine.ports or ())
    return msgspec.structs.replace(machine, ports=ports)


def test_two_sparks_with_a_cable_have_rdma_over_both_devices_of_the_socket() -> None:
    link = link_of(("a", "b"), (A, B))
    assert link.kind == "rdma"
    assert [(rank.interface, rank.address) for rank in link.ranks] == [
        ("enp1s0f1np1", "192.168.100.11"), ("enp1s0f1np1", "192.168.100.12"),
    ]  # fmt: skip
    assert all(rank.devices == ("rocep1s0f1", "roceP2p1s0f1") for rank in link.ranks)
    assert all((rank.rate_gbit, rank.mtu, rank.gid_indices) == (200.0, 9000, (3, 3)) for rank in link.ranks)


def test_a_box_without_a_cable_leaves_sockets_and_is_named() -> None:
    link = link_of(("a", "b"), (A, without_cable(B)))
    assert (link.kind, link.ranks[1].address) == ("sockets", None)
    assert "b" in link.because


def test_a_box_whose_ports_nobody_looked_at_makes_the_link_unknown() -> None:
    link = link_of(("a", "b"), (A, GB10))
    assert (link.kind, link.because) == ("unknown", "nothing is known of the ports of b")


def test_a_box_that_has_no_ports_is_known_to_have_none() -> None:
    assert link_of(("a", "b"), (A, msgspec.structs.replace(H200, ports=()))).kind == "sockets"


def test_of_several_ports_the_one_in_a_subnet_of_both_is_used() -> None:
    other = tuple(
        msgspec.structs.replace(port, address="10.0.0.12") if port.device == "rocep1s0f1" else port for port in B.ports or ()
    )
    link = link_of(("a", "b"), (A, msgspec.structs.replace(B, ports=other)))
    assert [rank.interface for rank in link.ranks] == ["enP2p1s0f1np1", "enP2p1s0f1np1"]


def test_a_port_at_ten_gigabits_is_not_taken_for_the_direct_link() -> None:
    slow = tuple(msgspec.structs.replace(port, rate_gbit=10.0) for port in B.ports or ())
    assert link_of(("a", "b"), (A, msgspec.structs.replace(B, ports=slow))).kind == "sockets"
