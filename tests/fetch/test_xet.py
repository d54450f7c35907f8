"""Files that come through Xet, by its real client from a store in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from hf_xet import XetSession

from home import Home
from releases import REPOSITORY, add_release, sha256, snapshot
from small_hub import Hub
from stoker.fetch.listing import HubFile
from stoker.fetch.xet import PLAIN_LIMIT_BYTES, wants_xet


@pytest.fixture
def shard(hub: Hub, tmp_path: Path) -> Path:
    """A release of one large file, on the hub and in its Xet store."""
    folder, _ = add_release(hub, tmp_path, shards=1)
    shard = next(folder.glob("*.safetensors"))
    hub.xet_store = f"local://{tmp_path / 'xet'}"
    with XetSession().new_upload_commit(endpoint=hub.xet_store) as commit:
        upload = commit.start_upload_file(str(shard))
    hub.xet_hashes[sha256(shard)] = upload.result().xet_info.hash
    return shard


def kept(user: Home, hub: Hub) -> Path:
    return snapshot(user, hub.repositories[REPOSITORY].refs["main"])


def test_where_you_say_so_the_large_file_comes_through_xet(user: Home, hub: Hub, shard: Path) -> None:
    user.run("fetch", REPOSITORY, "--xet")
    assert sha256(kept(user, hub) / shard.name) == sha256(shard)
    assert hub.paths("store") == []


def test_xet_too_goes_on_in_the_middle_of_a_file(user: Home, hub: Hub, shard: Path) -> None:
    partial = kept(user, hub).parent.parent / "blobs" / f"{sha256(shard)}.stoker.incomplete"
    partial.parent.mkdir(parents=True)
    half = shard.stat().st_size // 2
    partial.write_bytes(shard.read_bytes()[:half])
    user.configure("[fetch]\nxet = true\n")
    view = user.json("fetch", REPOSITORY)
    assert view["need_bytes"] == view["models"][0]["size_bytes"] - half
    assert sha256(kept(user, hub) / shard.name) == sha256(shard)
    assert hub.paths("store") == []


def test_a_store_that_fails_is_given_up_with_the_setting_that_goes_round_it(user: Home, hub: Hub, shard: Path) -> None:
    hub.xet_hashes[sha256(shard)] = "ab" * 32
    said = user.run("fetch", REPOSITORY, "--xet", "--tries", "2", code=4).stderr
    assert "`xet = false`" in said
    user.run("fetch", REPOSITORY)
    assert sha256(kept(user, hub) / shard.name) == sha256(shard)


def test_a_hub_without_xet_hands_files_out_plainly_all_the_same(user: Home, hub: Hub, shard: Path) -> None:
    hub.xet_hashes.clear()
    user.run("fetch", REPOSITORY, "--xet")
    assert sha256(kept(user, hub) / shard.name) == sha256(shard)


@pytest.mark.parametrize(
    ("chosen", "size_bytes", "through_xet"),
    [(None, 10**9, False), (None, PLAIN_LIMIT_BYTES + 1, True), (True, 1, True), (False, PLAIN_LIMIT_BYTES + 1, False)],
)
def test_plain_http_is_the_way_unless_it_does_not_have_the_file(
    chosen: bool | None, size_bytes: int, through_xet: bool
) -> None:
    assert wants_xet(chosen, HubFile("a", size_bytes, "0" * 64)) is through_xet
    assert wants_xet(chosen, HubFile("a", size_bytes, "0" * 40)) is False
