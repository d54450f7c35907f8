"""Whose turn it is at the real door: limits, keys, those who leave, and a service that stops meanwhile."""

from __future__ import annotations

from hashlib import sha256

import pytest

from door_stage import HeldEngine, Stage, act, until
from gateway_client import Answer, Client
from stoker.gateway.directory import Entry
from stoker.records import NamedKey, QueueLimits, State

MANY = 300


class Queue(Stage):
    """One engine that answers when it is told to, and named keys."""

    def __init__(self, running: int | None = 1, waiting: int = 64) -> None:
        self.held = HeldEngine()
        super().__init__(self.held, ())
        self.limits = QueueLimits(running, waiting, 0.0)
        self.state = State.READY

    def entries(self) -> list[Entry]:
        [entry] = super().entries()
        return [entry if self.state is State.READY else entry._replace(state=self.state, endpoint=None, why="told to")]

    def add_keys(self, *keys: tuple[str, int | None, int]) -> None:
        digests = {name: sha256(name.encode()).hexdigest() for name, _, _ in keys}
        self.keyring.load(
            NamedKey(name, digests[name], 0.0, running=running, priority=priority) for name, running, priority in keys
        )

    async def enter(self, tag: str, key: str = "key") -> Client:
        """Sends a request and returns once it runs or waits."""
        before, self.key = self.door.serving.in_flight("chat"), key.encode()
        client = await self.chat(tag=tag)
        await until(lambda: self.door.serving.in_flight("chat") == before + 1)
        return client

    async def let_go(self, *clients: Client) -> list[Answer]:
        """Lets one request after the other be answered."""
        answers = []
        for client in clients:
            (await self.held.next()).set()
            answers.append(await client.read_answer())
        return answers


def test_those_who_wait_follow_in_turn_and_one_too_many_is_told_why() -> None:
    stage = Queue(waiting=1)

    async def story(_: Stage) -> None:
        first, second = await stage.enter("1"), await stage.enter("2")
        refused = await (await stage.chat(tag="3")).read_answer()
        assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "queue_full", "5")
        assert (refused.headers["x-stoker-service"], refused.headers["x-stoker-model"]) == ("chat", "m")
        assert "1 requests run and 1 wait" in refused.json()["error"]["message"]
        assert [answer.status for answer in await stage.let_go(first, second)] == [200, 200]

    act(stage, story)
    assert stage.held.tags == ["1", "2"]
    assert sorted(record.status or 0 for record in stage.used) == [200, 200, 429]


def test_the_refusal_of_a_queue_has_the_shape_of_anthropics_path() -> None:
    stage = Queue(waiting=0)
    stage.path = b"/v1/messages"

    async def story(_: Stage) -> None:
        first = await stage.enter("1")
        refused = (await (await stage.chat(tag="2")).read_answer()).json()
        assert (refused["type"], refused["error"]["type"]) == ("error", "rate_limit_error")
        await stage.let_go(first)

    act(stage, story)


def test_one_that_leaves_while_it_waits_never_reaches_the_engine() -> None:
    stage = Queue()

    async def story(_: Stage) -> None:
        first, second, third = [await stage.enter(tag) for tag in ("1", "2", "3")]
        second.writer.transport.abort()
        await until(lambda: stage.door.serving.in_flight("chat") == 2)
        await stage.let_go(first, third)

    act(stage, story)
    assert stage.held.tags == ["1", "3"]
    assert sorted(record.status or 0 for record in stage.used) == [0, 200, 200]


def test_one_that_leaves_while_it_runs_gives_its_place_to_the_next() -> None:
    stage = Queue()

    async def story(_: Stage) -> None:
        first, second = await stage.enter("1"), await stage.enter("2")
        await stage.held.next()
        first.writer.transport.abort()
        await stage.let_go(second)

    act(stage, story)


def test_a_key_that_is_revoked_sends_nothing_more_to_the_engine() -> None:
    stage = Queue()
    stage.add_keys(("alice", None, 0))

    async def story(_: Stage) -> None:
        mine = [await stage.enter(f"alice{number}", "alice") for number in range(4)]
        other = await stage.enter("other")
        await stage.held.next()
        assert stage.meter.cut("alice") == 4
        assert [(await client.read_answer()).code for client in mine] == ["revoked_api_key"] * 4
        await stage.let_go(other)

    act(stage, story)
    assert stage.held.tags == ["alice0", "other"]


def test_a_service_that_stops_tells_everybody_who_waits() -> None:
    stage = Queue(waiting=MANY)

    async def story(_: Stage) -> None:
        first = await stage.enter("first")
        waiting = [await stage.enter(str(number)) for number in range(MANY)]
        stage.state = State.STOPPED
        await stage.let_go(first)
        answers = [await client.read_answer() for client in waiting]
        assert {(answer.status, answer.code) for answer in answers} == {(503, "service_stopped")}
        assert "told to" in answers[-1].json()["error"]["message"]

    act(stage, story)
    assert stage.held.tags == ["first"]


def test_two_keys_take_turns_however_much_one_of_them_asks() -> None:
    stage = Queue(running=2)
    stage.add_keys(("alice", None, 0), ("bob", None, 0))

    async def story(_: Stage) -> None:
        alice = [await stage.enter(f"a{number}", "alice") for number in range(5)]
        bob = [await stage.enter(f"b{number}", "bob") for number in range(2)]
        await stage.let_go(alice[0], alice[1], bob[0], alice[2], bob[1], alice[3], alice[4])

    act(stage, story)
    assert stage.held.tags.index("b1") < stage.held.tags.index("a3")
    assert [tag for tag in stage.held.tags if tag[0] == "a"] == [f"a{number}" for number in range(5)]


def test_a_key_of_higher_priority_goes_first() -> None:
    stage = Queue()
    stage.add_keys(("low", None, -10), ("high", None, 10))

    async def story(_: Stage) -> None:
        clients = [await stage.enter(key, key) for key in ("key", "low", "high")]
        await stage.let_go(clients[0], clients[2], clients[1])

    act(stage, story)
    assert stage.held.tags == ["key", "high", "low"]


@pytest.mark.parametrize("running", [None, 8], ids=["no limit of the service", "room in the service"])
def test_a_keys_own_limit_lets_it_wait_and_nobody_else(running: int | None) -> None:
    stage = Queue(running, waiting=1)
    stage.add_keys(("alice", 1, 0))

    async def story(_: Stage) -> None:
        first, second = await stage.enter("a1", "alice"), await stage.enter("a2", "alice")
        other = await stage.enter("other")
        stage.key = b"alice"
        refused = await (await stage.chat(tag="a3")).read_answer()
        assert (refused.status, refused.code) == (429, "queue_full")
        assert "1 requests of this key run, which is its limit" in refused.json()["error"]["message"]
        await stage.let_go(first, other, second)

    act(stage, story)
    assert stage.held.tags == ["a1", "other", "a2"]
