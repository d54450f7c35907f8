"""How often `stoker diagnose` is right: logs of public threads, held against the rules before and after they were mended.

python -m benchmarks.diagnosing_hits [--write docs/measured/diagnosing.md] prints a table. What is expected of each log is
in its first lines (`tests/cases/diagnose`); a commit's rules are run as they were, out of git, in a process of their own.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.diagnosing import CASES, HITS

ROOT = Path(__file__).parents[1]
TELL = """
import io, json, sys
from stoker.flows.diagnose import diagnose_source, read_context
told = {}
for name, context, log in json.load(sys.stdin):
    found = diagnose_source(io.BytesIO(log.encode()), name, read_context(context))
    told[name] = [[one.confidence, one.rule] for one in found.findings]
print(json.dumps(told))
"""
Told = Sequence[Sequence[str]]  # confidence and rule of each finding, the first first


class Group(NamedTuple):
    """Logs that were written down together, and the last commit whose rules knew nothing of them."""

    says: str
    logs: str  # their names begin so
    written: str | None  # the commit with which they came, where names alone do not tell them
    before: str | None  # None where each log keeps what was told of it at first


GROUPS = (
    Group("first", "thread-", "4290db2", "85664dd"),
    Group("second", "blind-", None, "07a3a0d"),
    Group("third", "fresh-", None, None),
)
SECTION = """{heading}
<!-- Written by `python -m benchmarks.diagnosing_hits --write docs/measured/diagnosing.md`. -->

Logs were shortened from public issue threads to the lines that tell, and what each should be found to say was written down
before the rules were tried on it. Then the rules were mended, so only the rows "as before" say how well `stoker diagnose`
does with a log that it was not written for: the rows "now" say that mending did no harm. The third set came in three
batches, each tried before anything was mended for it. Faults were mostly sought that no log here had yet, which makes them
rarer than what people meet first; the sets were chosen by those who write the rules, and most logs are short. A set that
others choose may do better or worse.

| logs | rules | cause first | rightly none | none, but there is a cause | another first | any wrong one |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
{rows}

"None" is no finding that is certain or likely ("I don't know"). "Any wrong one" counts logs with a finding that is certain
or likely and not expected; harmless noise is not counted. "As before" is strict: where mending added a rule for a log's
cause, nothing that was said before counts as right.
"""


def read_expected(file: Path) -> tuple[dict[str, list[str]], str]:
    """Returns what is expected of a log, by key, and the log."""
    head, _, log = file.read_text(encoding="utf-8").partition("#! log\n")
    expected: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, _, value = line.removeprefix("#! ").partition(": ")
        expected.setdefault(key, []).append(value)
    return expected, log


def find_logs(group: Group) -> list[Path]:
    """Returns the logs of a group that are still there."""
    files = sorted(CASES.glob(f"{group.logs}*.log"))
    if group.written is None:
        return files
    listed = _git("ls-tree", "--name-only", group.written, f"{CASES.relative_to(ROOT)}/").decode().split()
    return [file for file in files if str(file.relative_to(ROOT)) in listed]


def diagnose_all(files: Sequence[Path], commit: str | None) -> Mapping[str, Told]:
    """Returns what the program of a commit says of each log; None is the one that is here."""
    asked = []
    for file in files:
        expected, log = read_expected(file)
        asked.append((file.stem, next(iter(expected.get("context", [])), None), log))
    with tempfile.TemporaryDirectory() as folder:
        source = ROOT / "src"
        if commit is not None:
            with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, "src"))) as packed:
                packed.extractall(folder, filter="data")
            source = Path(folder) / "src"
        done = subprocess.run(
            [sys.executable, "-c", TELL], input=json.dumps(asked), capture_output=True, text=True, check=True,
            env={"PYTHONPATH": str(source), "PATH": ""},
        )  # fmt: skip
    told: Mapping[str, Told] = json.loads(done.stdout)
    return told


def verdicts(files: Sequence[Path], told: Mapping[str, Told]) -> Counter[str]:
    """Counts how the first finding of each log compares with the one expected, and which logs have a wrong one."""
    counts: Counter[str] = Counter()
    for file in files:
        expected, _ = read_expected(file)
        kind = verdict(expected["top"][0], told[file.stem])
        allowed = {*expected["top"][0].split(), *expected.get("then", [])}
        wrong = [rule for confidence, rule in told[file.stem] if confidence != "possible" and rule not in allowed]
        counts[kind] += 1
        counts["wrong"] += bool(wrong)
        if kind in ("silent", "other") or wrong:
            print(f"  {kind:7} {file.stem}: {expected['top'][0]}; told {told[file.stem]}", file=sys.stderr)
    return counts


def verdict(top: str, told: Told) -> str:
    """Returns what the first finding is: right, rightly none, silent, or another."""
    sure = [rule for confidence, rule in told if confidence != "possible"]
    if top == "nothing":
        return "other" if sure else "unknown"
    if told and told[0][1] == top.split()[1]:
        return "right"
    return "other" if sure else "silent"


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def first_told(files: Sequence[Path]) -> Mapping[str, Told]:
    """Returns what the logs keep of the first time they were diagnosed."""
    kept = {file.stem: read_expected(file)[0]["first"] for file in files}
    return {name: [one.split() for one in told if one != "nothing"] for name, told in kept.items()}


def rows() -> list[str]:
    """Returns the table's rows: each group with the rules as they were before it, and as they are."""
    found = []
    for group in GROUPS:
        files = find_logs(group)
        before = diagnose_all(files, group.before) if group.before else first_told(files)
        says = f"as before ({group.before})" if group.before else "as before (kept in the logs)"
        for rules, told in ((says, before), ("now", diagnose_all(files, None))):
            print(f"{group.says} set, {rules}", file=sys.stderr)
            counts = verdicts(files, told)
            cells = " | ".join(str(counts[kind]) for kind in ("right", "unknown", "silent", "other", "wrong"))
            found.append(f"| {group.says}, {len(files)} | {rules} | {cells} |")
    return found


def main() -> None:
    """Prints the table, or writes its section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    section = SECTION.format(heading=HITS, rows="\n".join(rows()))
    if given.write is None:
        print(section)
    else:
        given.write.write_text(given.write.read_text().partition(HITS)[0].rstrip() + "\n\n" + section)


if __name__ == "__main__":
    main()
