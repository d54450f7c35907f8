"""Who is let in: by value, with a clock that the test moves."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.gateway.attempts import MOST_REMEMBERED, PERIOD_S, WRONG_KEYS, origin_of
from stoker.gateway.bucket import Bucket
from stoker.gateway.keyring import KEY_LIMIT_BYTES, Caller, Denial, Keyring, Place, out_of_scope
from stoker.records import NamedKey

OWNER, CONTROL, ALICE = "sk-stoker-owner", "sk-stoker-control", "sk-stoker-alice"
AWAY = "203.0.113.7"
NOW = 1.8e9


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make_ring(*keys: NamedKey, clock: Clock | None = None) -> Keyring:
    ring = Keyring(OWNER, CONTROL, clock or Clock(), Clock(NOW))
    ring.load(keys)
    return ring


def named(name: str = "alice", secret: str = ALICE, **more: object) -> NamedKey:
    return NamedKey(name, sha256(secret.encode()).hexdigest(), NOW - 10, **more)  # type: ignore[arg-type]


def bearer(key: str | bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", b"x"), (b"authorization", b"Bearer " + (key.encode() if isinstance(key, str) else key))]


def status(answer: Caller | Denial) -> tuple[int, str]:
    assert isinstance(answer, Denial)
    return answer.status, answer.code


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (bearer(OWNER), "owner"),
        (bearer(ALICE), "alice"),
        ([(b"authorization", b"bEaReR   " + ALICE.encode() + b" ")], "alice"),
        ([(b"x-api-key", ALICE.encode())], "alice"),
        ([(b"x-api-key", b" " + OWNER.encode())], "owner"),
        ([(b"authorization", b"Bearer dummy"), (b"x-api-key", ALICE.encode())], "alice"),
        ([(b"authorization", b"Basic abc"), (b"x-api-key", ALICE.encode())], "alice"),
    ],
)
def test_a_right_key_is_known_however_it_is_shown(headers: list[tuple[bytes, bytes]], name: str) -> None:
    who = make_ring(named()).who(headers)
    assert isinstance(who, Caller)
    assert who.name == name


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"x-api-key", b"")],
        [(b"authorization", ALICE.encode())],
        [(b"authorization", b"Basic " + ALICE.encode())],
        bearer(ALICE + "x"),
        bearer(ALICE[:-1]),
        bearer(ALICE.upper()),
        bearer(sha256(ALICE.encode()).hexdigest()),
        bearer(sha256(ALICE.encode()).digest()),
        bearer("schlüssel-ключ-鍵-🔑"),
        bearer(b"\xff\xfe\x00\x80"),
        bearer("k" * 60_000),
        bearer(ALICE + "\0" * KEY_LIMIT_BYTES),
        [(b"authorization", b"Bearer wrong"), (b"authorization", b"Bearer " + ALICE.encode())],
    ],
)
def test_anything_else_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    assert status(make_ring(named()).who(headers)) == (401, "invalid_api_key")


@given(st.binary(max_size=2000), st.binary(max_size=2000))
def test_no_bytes_at_all_make_it_fail(authorization: bytes, api_key: bytes) -> None:
    answer = make_ring(named()).who([(b"authorization", authorization), (b"x-api-key", api_key)], "not an address")
    assert isinstance(answer, Denial)


def test_each_key_opens_its_own_paths_alone() -> None:
    ring, scraper = make_ring(named(), named("prometheus", "scrapes", metrics=True)), "scrapes"
    places: tuple[Place, ...] = ("models", "metrics", "control")
    opened = {
        key: [isinstance(ring.who(bearer(key), place=place), Caller) for place in places]
        for key in (OWNER, CONTROL, ALICE, scraper)
    }
    assert opened == {
        OWNER: [True, True, False], CONTROL: [False, True, True], ALICE: [True, False, False], scraper: [False, True, False],
    }  # fmt: skip


def test_what_a_key_may_do_comes_with_its_caller() -> None:
    who = make_ring(named(models=("a", "b"), rpm=5, running=2, priority=10)).who(bearer(ALICE))
    assert who == Caller("alice", frozenset({"a", "b"}), 5, 2, 10)
    assert (who.may_ask("a"), who.may_ask("c")) == (True, False)
    assert Caller("owner").may_ask("anything")


def test_the_refusal_of_a_model_names_those_that_the_key_may_ask() -> None:
    denial = out_of_scope(Caller("alice", frozenset({"b", "a"})), "secret" * 1000)
    assert (denial.status, denial.kind) == (403, "permission_error")
    assert "Models of this key: `a`, `b`." in denial.message
    assert len(denial.message) < 400


def test_an_expired_and_a_revoked_key_say_so() -> None:
    assert status(make_ring(named(expires=NOW)).who(bearer(ALICE))) == (401, "expired_api_key")
    assert isinstance(make_ring(named(expires=NOW + 1)).who(bearer(ALICE)), Caller)
    assert status(make_ring(named(revoked=NOW - 5)).who(bearer(ALICE))) == (401, "revoked_api_key")


def test_a_key_revoked_here_stays_so_until_keys_are_loaded() -> None:
    ring = make_ring(named(), named("bob", "sk-stoker-bob"))
    ring.revoke("alice", NOW)
    assert status(ring.who(bearer(ALICE))) == (401, "revoked_api_key")
    assert isinstance(ring.who(bearer("sk-stoker-bob")), Caller)
    assert ring.names() == {"alice", "bob"}
    ring.load([])
    assert status(ring.who(bearer(ALICE))) == (401, "invalid_api_key")


def test_a_rate_lets_so_many_through_at_once_and_then_evenly() -> None:
    clock = Clock()
    ring = make_ring(named(rpm=6), clock=clock)
    assert all(isinstance(ring.who(bearer(ALICE)), Caller) for _ in range(6))
    denial = ring.who(bearer(ALICE))
    assert status(denial) == (429, "rate_limit_exceeded")
    assert isinstance(denial, Denial)
    assert denial.retry_after_s == 10
    assert "6 requests a minute" in denial.message
    clock.now += 10
    assert isinstance(ring.who(bearer(ALICE)), Caller)
    assert status(ring.who(bearer(ALICE)))[0] == 429


def test_other_keys_coming_and_going_give_nobody_a_fresh_rate() -> None:
    ring = make_ring(named(rpm=1))
    ring.who(bearer(ALICE))
    ring.load([named(rpm=1), named("bob", "sk-stoker-bob")])
    assert status(ring.who(bearer(ALICE)))[0] == 429


@given(st.integers(1, 200), st.lists(st.floats(0, 30), max_size=300))
def test_a_bucket_never_lets_twice_its_measure_through_in_a_period(most: int, pauses: list[float]) -> None:
    bucket, now, passed = Bucket(most, 60.0), 1e6, []
    for pause in pauses:
        now += pause
        wait_s = bucket.take(now)
        if wait_s:
            assert bucket.wait_s(now + wait_s) == 0.0
        else:
            passed.append(now)
    assert all(sum(start <= at < start + 60.0 for at in passed) <= 2 * most for start in passed)


def test_a_thousand_wrong_keys_from_elsewhere_are_not_even_looked_at() -> None:
    clock = Clock()
    ring = make_ring(named(), clock=clock)
    answers = [status(ring.who(bearer(f"guess-{number}"), AWAY)) for number in range(1000)]
    assert answers == [(401, "invalid_api_key")] * WRONG_KEYS + [(429, "too_many_wrong_keys")] * (1000 - WRONG_KEYS)
    assert status(ring.who(bearer(OWNER), AWAY))[0] == 429
    assert isinstance(ring.who(bearer(OWNER), "203.0.113.8"), Caller)
    clock.now += PERIOD_S / WRONG_KEYS
    assert isinstance(ring.who(bearer(OWNER), AWAY), Caller)


def test_one_neighbour_with_a_wrong_key_locks_nobody_out_who_was_let_in_before() -> None:
    ring = make_ring(named())
    assert isinstance(ring.who(bearer(ALICE), AWAY), Caller)
    for number in range(1000):
        ring.who(bearer(f"guess-{number}"), AWAY)
    assert isinstance(ring.who(bearer(ALICE), AWAY), Caller)
    assert status(ring.who(bearer(OWNER), AWAY))[0] == 429


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1", ""])
def test_no_local_program_locks_the_owner_out(peer: str) -> None:
    ring = make_ring(named())
    answers = [status(ring.who(bearer(f"guess-{number}"), f"127.0.0.{number % 250 + 1}"))[0] for number in range(1000)]
    assert answers == [401] * WRONG_KEYS + [429] * (1000 - WRONG_KEYS)
    for key in (OWNER, ALICE):
        assert isinstance(ring.who(bearer(key), peer), Caller)


def test_a_missing_key_a_revoked_one_and_one_for_other_paths_are_no_guesses() -> None:
    ring = make_ring(named(revoked=NOW))
    for _ in range(3 * WRONG_KEYS):
        ring.who([], AWAY)
        ring.who(bearer(ALICE), AWAY)
        ring.who(bearer(OWNER), AWAY, "control")
    assert status(ring.who(bearer("guess"), AWAY)) == (401, "invalid_api_key")


def test_what_is_remembered_of_addresses_is_bounded() -> None:
    ring = make_ring(named())
    for number in range(MOST_REMEMBERED + 500):
        peer = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        ring.who(bearer("guess"), peer)
        ring.who(bearer(ALICE), peer)
    assert len(ring._attempts._failed) <= MOST_REMEMBERED
    assert len(ring._attempts._known) <= MOST_REMEMBERED


@pytest.mark.parametrize(
    ("peer", "origin"),
    [
        ("127.9.9.9", "loopback"),
        ("::1", "loopback"),
        ("", "loopback"),
        ("192.168.1.5", "192.168.1.5"),
        ("::ffff:192.168.1.5", "192.168.1.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_addresses_that_one_sender_has_count_as_one(peer: str, origin: str) -> None:
    assert origin_of(peer) == origin
