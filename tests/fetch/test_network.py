"""`stoker fetch` on a network that fails: what it does about it, and what it says."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from home import Home, wait_for
from releases import REPOSITORY, add_release, sha256, snapshot
from small_hub import BLOCK, Hub
from stoker.fetch.wire import choose_ipv4, is_private_enough

TOKEN = "hf_" + "x" * 34
QUICK = ("--stall-s", "0.5", "--tries", "2")


@pytest.fixture
def shard(hub: Hub, tmp_path: Path) -> Path:
    """A release of one large file, on the hub."""
    folder, _ = add_release(hub, tmp_path, shards=1)
    return next(folder.glob("*.safetensors"))


def commit_of(hub: Hub) -> str:
    return hub.repositories[REPOSITORY].refs["main"]


def ranges(hub: Hub) -> list[str | None]:
    return [one.range for one in hub.asked if one.server == "store"]


def arrived(user: Home, hub: Hub, shard: Path) -> bool:
    return sha256(snapshot(user, commit_of(hub)) / shard.name) == sha256(shard)


def partial(user: Home, hub: Hub, shard: Path) -> Path:
    return snapshot(user, commit_of(hub)).parent.parent / "blobs" / f"{sha256(shard)}.stoker.incomplete"


def begin(user: Home, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "stoker", "fetch", REPOSITORY, *words]
    return subprocess.Popen(argv, env=user.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_connection_cut_in_mid_file_is_taken_up_at_that_byte(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/store/", cut_at=8 * BLOCK)
    user.run("fetch", REPOSITORY)
    assert ranges(hub) == [None, f"bytes={8 * BLOCK}-"]
    assert hub.sent[sha256(shard)] == shard.stat().st_size
    assert arrived(user, hub, shard)


def test_a_server_that_ignores_ranges_sends_all_of_it_again(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/store/", cut_at=8 * BLOCK)
    hub.fail("/store/", no_range=True)
    user.run("fetch", REPOSITORY)
    assert arrived(user, hub, shard)


def test_wrong_content_is_deleted_and_fetched_again_once(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/store/", content=b"\0" * shard.stat().st_size)
    assert "came wrong (its SHA-256 is" in user.run("fetch", REPOSITORY).stderr
    assert arrived(user, hub, shard)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_content_that_is_wrong_twice_is_an_error_and_never_shown(user: Home, hub: Hub, shard: Path, name: str) -> None:
    right = hub.repositories[REPOSITORY].commits[commit_of(hub)][name]
    where = "/store/" if name.endswith(".safetensors") else f"/{name}"
    hub.fail(where, content=b"{" + right[1:-1] + b"!", times=2)
    said = user.run("fetch", REPOSITORY, code=1).stderr
    assert f"{name} of {REPOSITORY} came wrong twice" in said
    assert not (snapshot(user, commit_of(hub)) / name).exists()
    assert not (snapshot(user, commit_of(hub)).parent.parent / "refs").exists()


@pytest.mark.parametrize("more_bytes", [10, -10])
def test_a_size_that_the_hub_lists_wrongly_is_an_error(user: Home, hub: Hub, shard: Path, more_bytes: int) -> None:
    lie = {"size": shard.stat().st_size + more_bytes, "sha256": sha256(shard), "pointerSize": 1}
    hub.repositories[REPOSITORY].lies = {shard.name: {"lfs": lie}}
    user.run("fetch", REPOSITORY, *QUICK, code=1)
    assert not (snapshot(user, commit_of(hub)) / shard.name).exists()


@pytest.mark.parametrize("where", ["/api/models/", "/store/", "/config.json"])
def test_a_busy_hub_is_given_the_time_it_asks_for(user: Home, hub: Hub, shard: Path, where: str) -> None:
    hub.fail(where, status=429, headers={"Retry-After": "1"})
    assert "the hub answers 429; waiting 1 s" in user.run("fetch", REPOSITORY).stderr
    assert arrived(user, hub, shard)


def test_a_time_given_as_a_date_is_understood_and_patience_has_a_limit(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/api/models/", status=429, headers={"Retry-After": formatdate(4e9, usegmt=True)})
    said = user.run("fetch", REPOSITORY, code=4).stderr
    assert "limit `patience_s` of [fetch] is 900 s" in said


@pytest.mark.parametrize("where", ["/api/models/", "/store/"])
def test_a_failing_hub_is_asked_again_and_then_given_up(user: Home, hub: Hub, shard: Path, where: str) -> None:
    fault = hub.fail(where, status=503)
    user.run("fetch", REPOSITORY, *QUICK)
    assert arrived(user, hub, shard)
    for blob in snapshot(user, commit_of(hub)).parent.parent.glob("blobs/*"):
        blob.unlink()
    fault.times = 99
    assert "the hub answers 503" in user.run("fetch", REPOSITORY, *QUICK, code=1).stderr


def test_a_stall_is_ended_by_a_named_limit_and_taken_up(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/store/", hold_at=4 * BLOCK)
    assert "nothing came for 0.5 s (limit `stall_s`)" in user.run("fetch", REPOSITORY, *QUICK).stderr
    assert arrived(user, hub, shard)
    assert ranges(hub)[1] == f"bytes={4 * BLOCK}-"


def test_stalls_without_end_name_the_settings_and_the_rule(user: Home, hub: Hub, shard: Path) -> None:
    hub.fail("/store/", hold_at=0, times=99)
    said = user.run("fetch", REPOSITORY, *QUICK, code=4).stderr
    for part in ("limit `stall_s`", "`xet = false`", "`ipv4_only = true`", "rule: hf-ipv6-xet-download-stall"):
        assert part in said


def test_a_gated_repository_says_what_to_accept_and_how_to_sign_in(user: Home, hub: Hub, shard: Path) -> None:
    hub.repositories[REPOSITORY].is_gated = True
    hub.repositories[REPOSITORY].token = TOKEN
    said = user.run("fetch", REPOSITORY, code=3).stderr
    assert f"accept the terms at {hub.url}/{REPOSITORY}" in said
    assert "`hf auth login`, or HF_TOKEN" in said
    user.environment["HF_TOKEN"] = "hf_of_somebody_else"
    done = user.run("fetch", REPOSITORY, "--json", code=3)
    other = done.stdout + done.stderr
    assert "has not let the account of your token in" in other
    assert "hf_of_somebody_else" not in other


def test_the_token_goes_to_the_hub_alone_and_is_never_shown(user: Home, hub: Hub, shard: Path, tmp_path: Path) -> None:
    hub.repositories[REPOSITORY].token = TOKEN
    user.environment["HF_TOKEN"] = TOKEN
    hub.fail("/store/", status=503)
    done = user.run("--verbose", "fetch", REPOSITORY, *QUICK)
    assert TOKEN not in done.stdout + done.stderr
    assert {one.path: one.token for one in hub.asked if one.server == "hub" and one.token != TOKEN} == {}
    assert {one.token for one in hub.asked if one.server == "store"} == {None}
    files = [file for place in (tmp_path / "hf", user.paths.state) for file in place.rglob("*") if file.is_file()]
    assert not [file for file in files if TOKEN.encode() in file.read_bytes()]


def test_the_token_may_lie_in_a_file(user: Home, hub: Hub, shard: Path) -> None:
    hub.repositories[REPOSITORY].token = TOKEN
    (user.folder / "token").write_text(f"{TOKEN}\n")
    user.configure('[fetch]\ntoken_file = "token"\n')
    user.run("fetch", REPOSITORY)
    (user.folder / "token").write_text("two words")
    said = user.run("fetch", REPOSITORY, code=2).stderr
    assert "holds no token" in said
    assert "two words" not in said


def test_a_repository_that_is_private_or_absent_is_refused(user: Home, hub: Hub) -> None:
    assert "the hub has no repository org/none" in user.run("fetch", "org/none", code=3).stderr
    user.environment["HF_TOKEN"] = TOKEN
    assert "your token's account may not see it" in user.run("fetch", "org/none", code=3).stderr


def test_a_revision_that_is_not_there_is_wrong_use(user: Home, hub: Hub, shard: Path) -> None:
    assert "has no revision `v9`" in user.run("fetch", REPOSITORY, "--revision", "v9", code=2).stderr


def test_a_hub_that_nobody_answers_for_is_named_with_its_limit(user: Home, hub: Hub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = user.run("fetch", REPOSITORY, "--endpoint", f"http://127.0.0.1:{port}", *QUICK, code=4).stderr
    assert f"http://127.0.0.1:{port} cannot be reached" in said
    assert "limit `tries`" in said


COMMIT = "a" * 40


@pytest.mark.parametrize(
    "answer",
    [
        b"{}", b"[]", b"<html>Sign in to this network</html>", b'{"id": "a/b", "sha": "../../x", "siblings": []}',
        b'{"id": "a/b", "sha": "%s", "siblings": [1]}' % COMMIT.encode(),
        b'{"id": "a/b", "sha": "%s", "siblings": [{"rfilename": "a.gguf", "size": "9", "blobId": "%s"}]}'
        % (COMMIT.encode(), COMMIT.encode()),
        b'{"id": "a/b", "sha": "%s", "siblings": [{"rfilename": "a.gguf", "size": 9}]}' % COMMIT.encode(),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_hubs_is_told(user: Home, hub: Hub, shard: Path, answer: bytes) -> None:
    hub.fail("/api/models/", status=200, content=answer)
    said = user.run("fetch", REPOSITORY, code=1).stderr
    assert "does not answer as a hub does" in said or "the hub's list of files of org/tiny cannot be used" in said


def test_an_environment_that_forbids_the_network_is_named(user: Home, hub: Hub) -> None:
    user.environment["HF_HUB_OFFLINE"] = "1"
    assert "HF_HUB_OFFLINE is set" in user.run("fetch", REPOSITORY, code=3).stderr


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_a_fetch_that_was_ended_goes_on_at_the_byte_where_it_was(
    user: Home, hub: Hub, shard: Path, by: signal.Signals
) -> None:
    held = hub.fail("/store/", hold_at=64 * BLOCK)
    process = begin(user)
    file = partial(user, hub, shard)
    wait_for("the first part", lambda: file.exists() and file.stat().st_size == 64 * BLOCK)
    process.send_signal(by)
    said = process.communicate(timeout=60)[1]
    held.release.set()
    assert process.returncode == (1 if by is signal.SIGINT else -by)
    assert ("goes on where it stopped" in said) is (by is signal.SIGINT)
    user.run("fetch", REPOSITORY)
    assert ranges(hub) == [None, f"bytes={64 * BLOCK}-"]
    assert arrived(user, hub, shard)


def test_two_fetches_at_once_bring_one_copy(user: Home, hub: Hub, shard: Path) -> None:
    held = hub.fail("/store/", hold_at=4 * BLOCK)
    first = begin(user)
    assert held.struck.wait(60)
    second = begin(user)
    assert second.stderr is not None
    line = wait_for("the second to say what it waits for", second.stderr.readline)
    held.release.set()
    assert "is being fetched by another process" in line
    assert (first.wait(60), second.wait(60)) == (0, 0)
    for process in (first, second):
        process.communicate()
    assert ranges(hub) == [None]
    assert arrived(user, hub, shard)


def test_ipv4_alone_is_chosen_by_you_or_not_at_all_where_there_is_no_ipv6(hub: Hub) -> None:
    assert choose_ipv4(None, f"http://127.0.0.1:{hub.port}") == (False, "")
    assert choose_ipv4(True, "http://127.0.0.1:1")[0] is True


@contextmanager
def ipv6_that_says_nothing(port: int) -> Iterator[None]:
    """A listener whose queue is full, so that the kernel drops the first packet of whoever comes next."""
    with ExitStack() as stack:
        full, *callers = (stack.enter_context(socket.socket(socket.AF_INET6)) for _ in range(4))
        full.bind(("::1", port))
        full.listen(0)
        for one in callers:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        yield


@pytest.mark.parametrize("answers", ["refuses", "says nothing"])
def test_a_fetch_goes_round_ipv6_that_leads_nowhere(user: Home, hub: Hub, shard: Path, tmp_path: Path, answers: str) -> None:
    names = tmp_path / "hosts"
    names.write_text("127.0.0.1 localhost both.test\n::1 both.test\n")
    inside = ("unshare", "-rm", "sh", "-c", f'mount --bind {names} /etc/hosts && exec "$@"', "sh")
    if subprocess.run((*inside, "true"), capture_output=True, check=False).returncode:
        pytest.skip("this machine lets no user give names to addresses")
    argv = (*inside, sys.executable, "-m", "stoker", "fetch", REPOSITORY, "--endpoint", f"http://both.test:{hub.port}")
    with ipv6_that_says_nothing(hub.port) if answers == "says nothing" else nullcontext():
        done = subprocess.run(argv, env=user.environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "IPv4 alone: both.test has an IPv6 address that does not answer" in done.stderr
    assert arrived(user, hub, shard)


@pytest.mark.parametrize(
    ("endpoint", "may"),
    [("https://hub.example", True), ("http://127.0.0.1:80", True), ("http://localhost", True), ("http://[::1]:1", True),
     ("http://hub.example", False), ("http://10.0.0.1", False), ("http://localhost.example", False)],
)  # fmt: skip
def test_a_token_is_sent_only_where_nobody_can_read_along(endpoint: str, may: Any) -> None:
    assert is_private_enough(endpoint) is may
