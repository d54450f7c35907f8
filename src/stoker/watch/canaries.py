"""Canary prompts: a few fixed questions, asked when nobody asks anything, and what their answers say. Pure.

Users' figures move with what they ask. These do not: the same words, greedily answered, with nobody else on the machine.
So a round that is slower, drafts worse or answers otherwise than the rounds before it says something of the engine, and
one that is as ever clears the drafts of what other work made of their accept rate.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from hashlib import sha256
from statistics import median
from typing import NamedTuple

from stoker.watch.speculation import BELOW, DECAYED, DROPPED, OTHER_WORK
from stoker.watch.table import Looked, threshold

PROMPTS = (
    "Write a Python function that returns the sum of a list of numbers.",
    "Count from one to forty in words, one number a line.",
    "Describe a rainy day by the sea in a few sentences.",
)
TOKENS = 48  # each
UNANSWERED, SLOW, WORSE, CHANGED = "canary-unanswered", "canary-slow", "canary-drafts-worse", "canary-answers-changed"
DRAFT_FAULTS = (DROPPED, DECAYED, BELOW)
LEARNT_ROUNDS = 3  # before anything is said; an engine whose arithmetic allows several answers shows them in these
MOST_ROUNDS = 50
LEAST_DRAFTED = 60  # as in the recorded series: a rate of fewer says nothing
TWICE = 2  # once is chance: a clock that throttled, a backup that ran
ACCEPTED_ROUNDS = 24  # another answer that came so often in a row is how it answers now


class CanaryAnswer(NamedTuple):
    """A fingerprint of what was answered, and how long its first token and each of the others took."""

    text: int
    ttft_s: float
    token_s: float | None


class CanaryRound(NamedTuple):
    """One answer for each prompt, and the drafts of all; None where the engine does not count them, or others asked too."""

    at_s: float
    answers: tuple[CanaryAnswer, ...]
    drafted: int | None = None
    accepted: int | None = None

    @property
    def token_s(self) -> float | None:
        """The mean time of a token after the first."""
        known = [one.token_s for one in self.answers if one.token_s is not None]
        return sum(known) / len(known) if known else None

    @property
    def ttft_s(self) -> float | None:
        """The mean TTFT."""
        return sum(one.ttft_s for one in self.answers) / len(self.answers) if self.answers else None

    @property
    def accept_rate(self) -> float | None:
        """Accepted / proposed draft tokens; None of too few."""
        known = self.drafted is not None and self.accepted is not None and self.drafted >= LEAST_DRAFTED
        return self.accepted / self.drafted if known and self.drafted and self.accepted is not None else None


def fingerprint(text: str) -> int:
    """Returns a number that another text would not have; no word of an answer is kept."""
    return int.from_bytes(sha256(text.encode()).digest()[:6])  # whole in a float, as which it is kept


class CanaryCheck:
    """Judges the rounds of one service under one plan; another plan may answer otherwise and begins anew."""

    def __init__(self, service: str, plan_id: str) -> None:
        self.plan_id = plan_id
        self.last: CanaryRound | None = None
        self._service = service
        self._known: list[set[int]] = [set() for _ in PROMPTS]
        self._token_s: deque[float] = deque(maxlen=MOST_ROUNDS)
        self._rates: deque[float] = deque(maxlen=MOST_ROUNDS)
        self._rounds = 0
        self._in_a_row = dict.fromkeys((UNANSWERED, SLOW, WORSE, CHANGED), 0)
        self._why: dict[str, str] = {}

    @property
    def is_in_doubt(self) -> bool:
        """Tells whether the last round was odd, so that the next one should not be long in coming."""
        return any(self._in_a_row.values())

    @property
    def is_learning(self) -> bool:
        """Tells whether too few rounds were seen to judge by."""
        return self._rounds < LEARNT_ROUNDS

    def fail(self, why: str) -> None:
        """Takes a round in which a prompt was not answered."""
        self._note(UNANSWERED, why)

    def take(self, one: CanaryRound) -> None:
        """Takes a round that was answered."""
        self.last = one
        self._note(UNANSWERED, None)
        if self.is_learning:
            self._learn(one)
            return
        self._note(SLOW, self._judge_speed(one))
        self._note(WORSE, self._judge_drafts(one))
        self._note(CHANGED, self._judge_texts(one) if self._in_a_row[CHANGED] < ACCEPTED_ROUNDS else None)
        if not self.is_in_doubt:
            self._learn(one)

    def look(self) -> Looked:
        """Returns what is wrong: what two rounds in a row have said."""
        said = {alert: self._why[alert] if count >= TWICE else None for alert, count in self._in_a_row.items()}
        return {(alert, self._service): why for alert, why in said.items()}

    def reconsider(self, looked: Looked, since_s: float) -> Looked:
        """Returns what was looked at with drafts cleared that a round since then found as good as ever: the work changed."""
        faults = {(alert, self._service): why for alert in DRAFT_FAULTS if (why := looked.get((alert, self._service)))}
        cleared = self._clears_drafts(since_s) if faults else None
        if cleared is None:
            return looked
        said = f"{next(iter(faults.values()))}; {cleared}"
        return looked | dict.fromkeys(faults) | {(OTHER_WORK, self._service): said}

    def _clears_drafts(self, since_s: float) -> str | None:
        """Says how well drafts are accepted where a round since then found them as good as ever; None where none did."""
        rate = None if self.last is None or self.last.at_s < since_s else self.last.accept_rate
        if rate is None or not self._rates or self._in_a_row[WORSE]:
            return None
        return f"of the canary prompts' drafts {rate:.2f} are accepted now, {median(self._rates):.2f} were before"

    def _note(self, alert: str, why: str | None) -> None:
        self._in_a_row[alert] = 0 if why is None else self._in_a_row[alert] + 1
        self._why[alert] = why or ""

    def _learn(self, one: CanaryRound) -> None:
        self._rounds += 1
        for known, answer in zip(self._known, one.answers, strict=False):
            known.add(answer.text)
        if one.token_s is not None:
            self._token_s.append(one.token_s)
        if one.accept_rate is not None:
            self._rates.append(one.accept_rate)

    def _judge_speed(self, one: CanaryRound) -> str | None:
        usual_s = median(self._token_s) if self._token_s else None
        if one.token_s is None or usual_s is None or one.token_s <= threshold(SLOW) * usual_s:
            return None
        return f"{one.token_s * 1000:.0f} ms a token with nobody else asking; {usual_s * 1000:.0f} ms are usual"

    def _judge_drafts(self, one: CanaryRound) -> str | None:
        usual, rate = (median(self._rates) if self._rates else None), one.accept_rate
        if rate is None or usual is None or rate >= threshold(WORSE) * usual:
            return None
        return f"{rate:.2f} of the drafts were accepted for the same prompts of which {usual:.2f} are usual"

    def _judge_texts(self, one: CanaryRound) -> str | None:
        pairs = zip(self._known, one.answers, strict=False)
        changed = [number for number, (known, answer) in enumerate(pairs, start=1) if answer.text not in known]
        if not changed:
            return None
        return f"{len(changed)} of {len(PROMPTS)} fixed prompts get another answer than by the same plan before"

    def keep(self) -> list[tuple[float, ...]]:
        """Returns what was learnt: whose it is, speeds, rates, and the answers known of each prompt."""
        texts = [tuple(map(float, sorted(known))) for known in self._known]
        return [(float(fingerprint(self.plan_id)), float(self._rounds)), tuple(self._token_s), tuple(self._rates), *texts]

    def restore(self, kept: Sequence[Sequence[float]]) -> None:
        """Takes what was kept, unless it is of another plan or of other prompts."""
        is_ours = len(kept) == 3 + len(PROMPTS) and list(kept[0][:1]) == [float(fingerprint(self.plan_id))]
        if not is_ours or len(kept[0]) != TWICE or not all(math.isfinite(one) for row in kept for one in row):
            return
        self._rounds = int(kept[0][1])
        self._token_s.extend(kept[1])
        self._rates.extend(kept[2])
        self._known = [set(map(int, row)) for row in kept[3:]]
