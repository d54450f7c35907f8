"""Who runs and who waits, by value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.gateway.admission import Claim, Line, Places, Ticket

LIMIT = 3


class Crowd:
    """A line and what ran, in order."""

    def __init__(self, **places: int | None) -> None:
        self.line = Line(Places(**places))
        self.ran: list[str] = []

    def enter(self, name: str, key: str = "a", **claim: int) -> Ticket | None:
        ticket = Ticket(Claim(key, **claim), lambda: self.ran.append(name))
        return ticket if self.line.enter(ticket) else None

    def must_enter(self, name: str, key: str = "a", **claim: int) -> Ticket:
        ticket = self.enter(name, key, **claim)
        assert ticket is not None
        return ticket


def test_so_many_run_and_the_others_follow_in_turn() -> None:
    crowd = Crowd(running=2)
    first, second = crowd.must_enter("1"), crowd.must_enter("2")
    crowd.enter("3"), crowd.enter("4")
    assert crowd.ran == ["1", "2"]
    crowd.line.leave(second)
    crowd.line.leave(first)
    assert crowd.ran == ["1", "2", "3", "4"]
    assert (crowd.line.running, crowd.line.waiting) == (2, 0)


def test_one_more_than_may_wait_gets_no_place_and_the_reason() -> None:
    crowd = Crowd(running=1, waiting=1)
    crowd.enter("1"), crowd.enter("2")
    assert crowd.enter("3") is None
    assert crowd.line.why_waiting(Claim("a")) == "1 requests run and 1 wait"


def test_one_key_with_many_requests_does_not_hold_another_back() -> None:
    crowd = Crowd(running=2)
    running = [crowd.must_enter(f"a{number}") for number in range(6)]
    crowd.enter("b0", "b")
    crowd.line.leave(running[0])
    assert crowd.ran == ["a0", "a1", "b0"]


def test_a_higher_priority_goes_first_and_equals_keep_their_order() -> None:
    crowd = Crowd(running=1)
    first = crowd.must_enter("first")
    crowd.enter("low", priority=-1), crowd.enter("usual"), crowd.enter("high", priority=1)
    crowd.line.leave(first)
    assert crowd.ran == ["first", "high"]


def test_a_keys_own_limit_holds_it_back_and_nobody_else() -> None:
    crowd = Crowd()
    first = crowd.must_enter("a1", key_running=1)
    crowd.enter("a2", key_running=1)
    crowd.enter("b1", "b")
    assert crowd.ran == ["a1", "b1"]
    assert "which is its limit" in crowd.line.why_waiting(Claim("a", key_running=1))
    crowd.line.leave(first)
    assert crowd.ran == ["a1", "b1", "a2"]


def test_tokens_in_flight_are_bounded_and_a_large_request_is_not_passed_over_for_ever() -> None:
    crowd = Crowd(tokens=100)
    first = crowd.must_enter("1", tokens=60)
    crowd.enter("large", tokens=90), crowd.enter("small", tokens=10)
    assert crowd.ran == ["1"]
    crowd.line.leave(first)
    assert crowd.ran == ["1", "large", "small"]


def test_a_request_over_the_whole_budget_runs_alone() -> None:
    crowd = Crowd(tokens=100)
    crowd.enter("huge", tokens=500)
    assert crowd.ran == ["huge"]


def test_one_that_leaves_while_it_waits_never_runs() -> None:
    crowd = Crowd(running=1)
    first = crowd.must_enter("1")
    crowd.line.leave(crowd.must_enter("2"))
    crowd.line.leave(first)
    assert crowd.ran == ["1"]
    assert (crowd.line.running, crowd.line.waiting) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-1, 1), st.integers(0, 50), st.booleans()), max_size=60))
def test_limits_hold_and_all_run_in_the_end(moves: list[tuple[str, int, int, bool]]) -> None:
    crowd = Crowd(running=LIMIT, waiting=None, tokens=60)
    here: list[Ticket] = []
    for number, (key, priority, tokens, leaves) in enumerate(moves):
        here.append(crowd.must_enter(str(number), key, priority=priority, key_running=2, tokens=tokens))
        assert crowd.line.running <= LIMIT
        ran = [ticket for ticket in here if ticket.runs]
        assert sum(ticket.claim.tokens for ticket in ran) <= 60
        assert all(sum(ticket.claim.key == one for ticket in ran) <= 2 for one in "abc")
        if leaves and ran:
            here.remove(ran[0])
            crowd.line.leave(ran[0])
    while here:
        one = next(ticket for ticket in here if ticket.runs)
        here.remove(one)
        crowd.line.leave(one)
    assert sorted(crowd.ran, key=int) == [str(number) for number in range(len(moves))]
