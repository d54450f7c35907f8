"""How rates look on a terminal."""

from __future__ import annotations

from stoker.records import Prediction

WHOLE_FROM = 20


def say_rate(rate: float) -> str:
    """Returns a rate with as many digits as mean something: '7.9', '31', '214'."""
    return f"{rate:.1f}" if rate < WHOLE_FROM else f"{rate:.0f}"


def say_prediction(expected: Prediction) -> str:
    """Returns a predicted rate with its interval."""
    return f"{say_rate(expected.decode_tok_s)} tok/s ({say_rate(expected.low_tok_s)} to {say_rate(expected.high_tok_s)})"
