"""Windows and waits, made shorter or longer all together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.watch.alerts import expression_of, load_alerts
from stoker.watch.prometheus.durations import say_duration, scale_durations


@pytest.mark.parametrize(
    ("expression", "scale", "scaled"),
    [
        ("rate(a[15m])", 1 / 60, "rate(a[15s])"),
        ("rate(a[1h:15s] offset 30m)", 1 / 100, "rate(a[36s:150ms] offset 18s)"),
        ("rate(a[90s])", 40, "rate(a[1h])"),
        ('a{b="[15m] offset 5m"} > 15', 1, 'a{b="[15m] offset 5m"} > 15'),
        ("predict_linear(a[30m], 7200) < stoker:x:15m", 0.5, "predict_linear(a[15m], 7200) < stoker:x:15m"),
    ],
)
def test_windows_steps_and_offsets_are_scaled_and_names_and_numbers_are_not(
    expression: str, scale: float, scaled: str
) -> None:
    assert scale_durations(expression, scale) == scaled


@pytest.mark.parametrize(
    ("seconds", "said"), [(900, "15m"), (86400, "1d"), (90, "90s"), (0.25, "250ms"), (0, "0s"), (0.0001, "0s")]
)
def test_a_length_is_said_in_the_largest_unit_that_says_it_whole(seconds: float, said: str) -> None:
    assert say_duration(seconds) == said


@given(st.sampled_from([alert.id for alert in load_alerts().alert]), st.integers(2, 50))
def test_what_is_made_longer_and_shorter_again_is_as_it_was(alert_id: str, factor: int) -> None:
    alert = next(one for one in load_alerts().alert if one.id == alert_id)
    once = scale_durations(expression_of(alert), 1.0000001)  # said in the largest units
    assert scale_durations(scale_durations(once, factor), 1 / factor) == once
