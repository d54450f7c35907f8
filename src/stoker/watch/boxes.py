"""Judges the linked boxes: one that is away and stays so. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.records.boxes import BoxView
from stoker.records.watching import Alert
from stoker.watch.table import Looked

AWAY = "box-away"


class BoxesCheck:
    """Remembers which boxes it was shown, so that what was said of one ends after its link did."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def remember(self, firing: Iterable[Alert]) -> None:
        """Takes up what a former daemon told, also of a box that is linked no more."""
        self._known |= {one.about for one in firing if one.id == AWAY}

    def look(self, boxes: Iterable[BoxView]) -> Looked:
        """Returns which boxes are away, and why."""
        away = {one.name: None if one.is_here else f"{one.why}; its models are not answered from here" for one in boxes}
        self._known |= away.keys()
        return {(AWAY, name): away.get(name) for name in self._known}
