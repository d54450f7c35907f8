"""Keeps what was found of each start in a log, so that the last one can be told of whatever came before it."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable

from stoker.diagnose.scan import Hit

EVIDENCE = 3  # lines kept of one sign
FAULTS = 30  # of the first lines that look like a fault, and as many of the last
SAME_START_LINES = 200  # one start says more than once that it begins
MARKS = frozenset({"launch", "probes begin", "probes end"})
# In a traceback: whose call raised it, and the code of it; what it raised stands below.
FRAME = re.compile(r'^\W*(?:\([^)]*\)\s*)?(?:(?:ERROR|INFO)\s[\d-]+ [\d:]+ \[[^\]]*\])?\s*(?:File "|raise |Traceback \()')


class Start:
    """What one start said. `begins` is its first line."""

    def __init__(self, begins: int) -> None:
        self.begins = begins
        self.ready_line: int | None = None
        self.ready_engine = ""
        self.stop_line: int | None = None  # on which it said that it was told to stop, once it was ready
        self.is_stopping = False  # from there to its last word
        self.version: str | None = None
        self.rules: dict[str, list[Hit]] = {}
        self.times: Counter[str] = Counter()
        self.last_line: dict[str, int] = {}  # on which the sign of a rule was seen last
        self.first_faults: list[Hit] = []
        self.last_faults: deque[Hit] = deque(maxlen=FAULTS)
        self.clues: dict[str, Hit] = {}
        self.spoke: Counter[str] = Counter()

    def add(self, hit: Hit) -> None:
        """Takes one hit; where there is enough of its kind it is only counted."""
        kind, name = hit.sign.kind, hit.sign.name
        if kind == "rule":
            self.times[name] += self.last_line.get(name) != hit.line  # two signs of one rule may be in the same line
            self.last_line[name] = hit.line
            kept = self.rules.setdefault(name, [])
            if len(kept) < EVIDENCE and hit.line not in {one.line for one in kept}:
                kept.append(hit)
        elif kind == "fault" and FRAME.match(hit.text) is None:
            (self.first_faults if len(self.first_faults) < FAULTS else self.last_faults).append(hit)
        elif kind == "clue":
            self.clues.setdefault(name, hit)
        elif kind == "ready":
            self.ready_line, self.ready_engine, self.stop_line, self.is_stopping = hit.line, name, None, False
        elif kind == "stop" and name == self.ready_engine and self.stop_line is None:
            self.stop_line, self.is_stopping = hit.line, True
        elif kind == "stopped" and name == self.ready_engine:
            self.is_stopping = False
        elif kind == "start":
            self.version = self.version or hit.found.groupdict().get("version")
        self.spoke[name] += {"start": 10, "stage": 10, "speaker": 1}.get(kind, 0)

    def was_survived(self, rule: str) -> bool:
        """Tells whether the engine became ready after all that it said of a rule: what it said ended nothing."""
        return self.ready_line is not None and self.last_line[rule] < self.ready_line

    def has_fault(self) -> bool:
        """Tells whether anything in it looks like a fault."""
        return bool(self.rules or self.first_faults)


class Heard:
    """All starts of one log, of which the last two are kept.

    `provoked`: the rules that our own probes bring about; `following`: those that only tell that an engine ended.
    """

    def __init__(self, provoked: frozenset[str], following: frozenset[str]) -> None:
        self._provoked, self._following = provoked, following
        self.starts = 0
        self.last = Start(1)
        self.before: Start | None = None
        self._said_line = 0  # where the last start said last that it begins
        self._aside: list[Hit] | None = None  # while Stoker's own probes ask: what sounds like a fault
        self._is_marked = False  # whether Stoker wrote between the launches; what else begins is a part of one then

    def add(self, hits: Iterable[Hit]) -> None:
        """Takes the hits of one block, in the order of their lines."""
        for hit in hits:
            if hit.sign.kind in MARKS:
                self._take_mark(hit)
            elif self.last.is_stopping and _is_fault(hit, self._following):
                continue  # what ends at somebody's word says so in words of faults
            elif self._aside is not None and _is_fault(hit, self._provoked):
                self._aside.append(hit)
                continue
            elif hit.sign.kind == "start" and not self._is_marked:
                self._begin(hit)
            self.last.add(hit)

    def _take_mark(self, hit: Hit) -> None:
        """What probes provoked is dropped once the engine is known to have outlived it; else it counts like the rest."""
        if hit.sign.kind != "probes end":
            self._count_provoked()
        self._aside = [] if hit.sign.kind == "probes begin" else None
        if hit.sign.kind == "launch":
            self._is_marked = True
            self._next(hit.line)
            self.starts += 1

    def _count_provoked(self) -> None:
        for hit in self._aside or ():
            self.last.add(hit)
        self._aside = None

    def _begin(self, hit: Hit) -> None:
        is_new = not self.starts or hit.line - self._said_line > SAME_START_LINES or self.last.ready_line or self._died()
        self._said_line = hit.line
        if not is_new:
            return
        if self.starts:
            self._next(hit.line)
        self.starts += 1

    def _next(self, line: int) -> None:
        if self.starts or self.last.spoke:  # else nothing stood before the first start
            self.before = self.last
        self.last = Start(line)

    def _died(self) -> bool:
        """A start that says it begins after a fault is another one, but for warnings of its first lines."""
        return any(hit.sign.name == "0" for hit in self.last.first_faults)

    def told(self, has_ended: bool = False) -> Start:
        """Returns the start to tell of: the last, or the one before it where the last has not gone wrong so far.

        `has_ended`: the last is known to have, whatever it said.
        """
        self._count_provoked()
        if has_ended or self.last.has_fault() or self.before is None or self.last.ready_line is not None:
            return self.last
        return self.before


def _is_fault(hit: Hit, rules: frozenset[str]) -> bool:
    """Tells whether a line looks like a fault that no rule knows, or one that these rules do."""
    return hit.sign.kind == "fault" or (hit.sign.kind == "rule" and hit.sign.name in rules)
