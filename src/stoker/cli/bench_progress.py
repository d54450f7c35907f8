"""How far a measurement is: which cell of how many, what is known of it so far, and how long it may take yet."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from stoker.bench.cell import Settings
from stoker.cli.show import duration


def limit_s(settings: Settings) -> float | None:
    """Returns when a cell begins no further repeat; None where its number of repeats was asked for, whatever they take."""
    if settings.soak_s is not None:
        return settings.soak_s
    return None if settings.runs is not None or settings.trace else settings.budget_s


def left_s(settings: Settings, count: int, took_s: Sequence[float], spent_s: float) -> float | None:
    """Returns how long the rest of `count` cells will take, by those measured; before the first by their limit, or None.

    `spent_s` went into the present one.
    """
    each_s = fmean(took_s) if took_s else limit_s(settings)
    if each_s is None:
        return None
    return max(0.0, each_s - spent_s) + each_s * max(0, count - len(took_s) - 1)


def left_text(settings: Settings, count: int, took_s: Sequence[float], spent_s: float) -> str:
    """Returns it in words; empty where nobody knows."""
    rest_s = left_s(settings, count, took_s, spent_s)
    if rest_s is None:
        return ""
    return f"about {duration(round(rest_s))} left" if took_s else f"up to about {duration(round(rest_s))} left"


def plan_text(settings: Settings, count: int) -> str:
    """Returns how long all of it may take, for the line above the cells."""
    cells, most_s = f"{count} cell{'s' * (count != 1)}", limit_s(settings)
    if most_s is None:
        return cells
    if settings.soak_s is not None:
        return f"{cells}, {duration(most_s)} each"
    whole = f": up to about {duration(most_s * count)}" if count > 1 else ""
    return f"{cells}, each until it is precise or its {duration(most_s)} (--budget) are over{whole}"
