"""The folder of Ray's files: empty at each start, and under a name that is short enough for sockets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fake_ray import remove_links
from stoker.errors import Refused
from stoker.launch.ray import SOCKET
from stoker.supervise.runtimes.ray import make_folder


@pytest.mark.parametrize("length", [1, 60])
def test_sockets_can_be_made_however_long_the_folders_name_is(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("d" * length) / "ray" / "duo"
    path = Path(make_folder(folder) + SOCKET)
    try:
        path.parent.mkdir(parents=True)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
        assert (folder / SOCKET[1:]).exists()
    finally:
        remove_links(tmp_path)


def test_what_the_last_launch_left_is_gone_and_the_name_stays(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 60) / "duo"
    try:
        first = make_folder(folder)
        (folder / "left").touch()
        assert make_folder(folder) == first
        assert list(folder.iterdir()) == []
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        remove_links(tmp_path)


def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 60) / "duo"
    link = Path(make_folder(folder))
    link.unlink()
    link.symlink_to(tmp_path)
    try:
        with pytest.raises(Refused, match="is not ours"):
            make_folder(folder)
    finally:
        link.unlink()
