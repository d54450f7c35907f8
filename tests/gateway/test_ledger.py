"""What answers said beside what their engine counted, by value."""

from __future__ import annotations

from stoker.flows.identity import read_total
from stoker.gateway.ledger import Ledger, Seen

LAUNCH = (1, 8001)


def judge(*looks: tuple[int, int], launch: object = LAUNCH) -> list[int]:
    ledger = Ledger()
    return [ledger.judge(launch, Seen(*look)) for look in looks]


def test_answers_that_their_engine_gave_are_no_finding() -> None:
    assert judge((100, 0), (150, 50), (150, 50), (400, 260)) == [0, 0, 0, 0]


def test_answers_of_somebody_else_are_told_once_at_the_second_look() -> None:
    assert judge((100, 0), (100, 40), (100, 40), (100, 40), (110, 50)) == [0, 0, 40, 0, 0]


def test_an_engine_that_counts_a_moment_later_is_no_finding() -> None:
    assert judge((100, 0), (100, 40), (140, 40), (140, 40)) == [0, 0, 0, 0]


def test_an_engine_that_counts_each_answer_a_moment_later_is_no_finding_however_many_follow() -> None:
    assert judge((100, 0), (100, 40), (140, 80), (180, 120), (220, 160), (260, 160)) == [0, 0, 0, 0, 0, 0]


def test_an_engine_that_counts_a_part_of_each_answer_is_told_of_while_answers_follow() -> None:
    assert judge((0, 0), (20, 30), (40, 60), (60, 90), (80, 120), (80, 120)) == [0, 0, 0, 0, 10, 0]


def test_other_clients_of_the_engine_are_none_of_this() -> None:
    assert judge((100, 0), (900, 10), (900, 20), (900, 20)) == [0, 0, 0, 10]


def test_another_launch_begins_anew() -> None:
    ledger = Ledger()
    assert ledger.judge((1, 1), Seen(500, 100)) == 0
    assert ledger.judge((2, 1), Seen(0, 200)) == 0
    assert ledger.judge((2, 1), Seen(30, 230)) == 0


def test_a_counter_is_added_up_over_its_labels() -> None:
    lines = ['vllm:generation_tokens_total{engine="0",model_name="a b"} 3.0', 'vllm:generation_tokens_total{engine="1"} 4']
    assert read_total(lines, "vllm:generation_tokens_total") == 7
    assert read_total(["llamacpp:tokens_predicted_total 12"], "llamacpp:tokens_predicted_total") == 12
    assert read_total(lines, "vllm:generation_tokens") is None
    assert read_total(["x_total NaN"], "x_total") is None
