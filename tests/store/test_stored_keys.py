"""Named keys on disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stoker.errors import Refused, StokerError, WrongUse
from stoker.flows.key_records import make_key, make_secret, view_key
from stoker.records import KeyWish, NamedKey
from stoker.store.keys import add_key, read_keys, revoke_key
from stoker.store.migrations import MIGRATIONS
from support import fails

NOW = 1.8e9


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stoker.db"


def make(name: str = "alice", now: float = NOW, **wish: object) -> NamedKey:
    return make_key(KeyWish(name, **wish), make_secret(), now)  # type: ignore[arg-type]


def test_a_key_is_read_as_it_was_added_and_nothing_of_the_key_itself_is_in_the_file(file: Path) -> None:
    secret = make_secret()
    key = make_key(KeyWish("alice", ("a", "b"), 60, 2, -10, 3600.0), secret, NOW)
    add_key(file, key)
    assert read_keys(file) == [key]
    assert key.expires == NOW + 3600
    written = b"".join(part.read_bytes() for part in file.parent.iterdir())
    assert secret.encode() not in written
    assert secret.removeprefix("sk-stoker-").encode() not in written


def test_keys_are_long_random_and_known_by_their_prefix() -> None:
    secrets = {make_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert all(secret.startswith("sk-stoker-") and len(secret) == 53 for secret in secrets)


def test_a_name_that_is_in_use_is_refused_and_free_again_after_it_was_revoked_or_expired(file: Path) -> None:
    add_key(file, make(expires_s=100.0))
    with fails(Refused, "there is a key called `alice` already", "stoker keys revoke alice"):
        add_key(file, make())
    later = make(now=NOW + 100)
    add_key(file, later)
    assert read_keys(file) == [later]
    revoke_key(file, "alice", NOW + 200)
    again = make(now=NOW + 300)
    add_key(file, again)
    assert read_keys(file) == [again]


def test_a_key_is_revoked_once(file: Path) -> None:
    add_key(file, make())
    add_key(file, make("bob"))
    revoke_key(file, "alice", NOW + 1)
    revoke_key(file, "alice", NOW + 2)
    assert [(key.name, key.revoked) for key in read_keys(file)] == [("alice", NOW + 1), ("bob", None)]


def test_an_unknown_name_is_answered_with_those_there_are(file: Path) -> None:
    with fails(WrongUse, "there is no key called `bob`", "`stoker keys add NAME` makes one"):
        revoke_key(file, "bob", NOW)
    add_key(file, make())
    with fails(WrongUse, "keys here: alice"):
        revoke_key(file, "bob' OR 1=1 --", NOW)
    assert read_keys(file)[0].revoked is None


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (KeyWish("owner"), "made for you"),
        (KeyWish("control"), "made for you"),
        (KeyWish(""), "cannot be a key's name"),
        (KeyWish("Alice"), "cannot be a key's name"),
        (KeyWish("a\nb"), "cannot be a key's name"),
        (KeyWish("schlüssel"), "cannot be a key's name"),
        (KeyWish("a" * 64), "cannot be a key's name"),
        (KeyWish("a", models=()), "at least one"),
        (KeyWish("a", models=("",)), "at least one"),
        (KeyWish("a", models=("\x1b[2J",)), "at least one"),
        (KeyWish("a", rpm=0), "cannot be made"),
        (KeyWish("a", running=0), "cannot be made"),
        (KeyWish("a", priority=101), "cannot be made"),
        (KeyWish("a", expires_s=0.0), "cannot be made"),
        (KeyWish("a", expires_s=float("nan")), "cannot be made"),
        (KeyWish("a", expires_s=float("inf")), "cannot be made"),
    ],
)
def test_a_wish_that_is_off_makes_no_key(wish: KeyWish, says: str) -> None:
    with fails(WrongUse, says):
        make_key(wish, make_secret(), NOW)


def test_another_keys_use_under_the_same_name_is_not_shown() -> None:
    assert view_key(make(), NOW - 1, NOW).last_used is None
    assert view_key(make(), NOW + 1, NOW + 2).last_used == NOW + 1


def test_reading_makes_no_file_and_changes_none_of_an_older_stoker(file: Path) -> None:
    assert read_keys(file) == []
    assert not file.exists()
    with closing(sqlite3.connect(file, isolation_level=None)) as old:
        old.executescript(f"{MIGRATIONS[0]}; PRAGMA user_version = 1")
    before = file.read_bytes()
    assert read_keys(file) == []
    assert file.read_bytes() == before
    add_key(file, make())
    assert len(read_keys(file)) == 1


def test_a_file_that_is_no_database_is_told(file: Path) -> None:
    file.write_bytes(b"this is no database at all, but long enough to be one " * 40)
    with fails(StokerError, "cannot be used", "not a database"):
        read_keys(file)
