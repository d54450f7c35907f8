"""Where the boxes of a model find each other."""

from __future__ import annotations

import pytest

from stoker.errors import Refused
from stoker.flows.ranks.head import _look_up
from stoker.records.boxes import Link
from support import fails


def link_to(host: str) -> Link:
    return Link("b", host, 8701, "0" * 64, "key", False)


@pytest.mark.parametrize("host", ["fd00::2", "no-such-box.invalid"])
def test_a_box_without_an_ipv4_address_is_refused_with_what_to_do(host: str) -> None:
    with fails(Refused, f"`b` is reached at {host}", "IPv4", "stoker boxes remove b"):
        _look_up(link_to(host))


def test_an_address_is_its_own() -> None:
    assert _look_up(link_to("127.0.0.1")) == "127.0.0.1"
