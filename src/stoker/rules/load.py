"""Reads the rules from `data/FOLDER/*.toml`, only those folders that the question needs, and the user's own."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from pathlib import Path

import msgspec

from stoker.config import find_paths
from stoker.errors import StokerError, WrongUse
from stoker.records import Record, Rule

DATA = Path(__file__).parent / "data"
# Folders named after an engine hold what concerns that engine alone; the others concern all of them.
ENGINES = ("llamacpp", "sglang", "vllm")


def folders() -> list[str]:
    """Returns the names of the folders with rules."""
    return sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())


class RuleFile(Record, frozen=True):
    """What a file of rules may hold; any other table is a word mistyped, which would be passed over in silence."""

    rule: tuple[Rule, ...] = ()


@cache
def load_folder(folder: str) -> tuple[Rule, ...]:
    """Returns the rules of one folder, in the order of the files and in them; raises StokerError where one is malformed."""
    return tuple(rule for file in sorted((DATA / folder).glob("*.toml")) for rule in read_rules(file))


def read_rules(file: Path) -> tuple[Rule, ...]:
    """Returns the rules of one file; raises StokerError that names the file and what is wrong."""
    try:
        return msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), RuleFile).rule
    except (ValueError, msgspec.ValidationError) as problem:
        raise StokerError(f"the rules in {file.name} cannot be read", why=str(problem)) from problem


def local_folder() -> Path:
    """Returns where a user's own rules lie, beside `stoker.toml`."""
    return find_paths().config.parent / "rules"


def load_local() -> tuple[Rule, ...]:
    """Returns the user's own rules as they are now; raises StokerError where one cannot be read.

    They may forbid what would crash, so that a file which cannot be read is not passed over.
    """
    found = []
    for file in sorted(local_folder().glob("*.toml")):
        try:
            found += [msgspec.structs.replace(rule, local=str(file)) for rule in read_rules(file)]
        except (StokerError, OSError) as problem:
            why = problem.why if isinstance(problem, StokerError) else str(problem)
            raise StokerError(
                f"your rules in {file} cannot be read", why=why, next_step="mend the file, or move it away"
            ) from problem
    return tuple(found)


def load_rules(engine: str | None = None) -> tuple[Rule, ...]:
    """Returns all rules, or those that can concern an engine; one of the user's takes the place of ours with its id."""
    wanted = [name for name in folders() if engine is None or name == engine or name not in ENGINES]
    local = load_local()
    replaced = {rule.id for rule in local}
    shipped = (rule for name in wanted for rule in load_folder(name) if rule.id not in replaced)
    return (*shipped, *local)


def find_rule(rule_id: str) -> Rule:
    """Returns one rule; raises WrongUse with the nearest names."""
    rules = {rule.id: rule for rule in load_rules()}
    if rule_id in rules:
        return rules[rule_id]
    close = difflib.get_close_matches(rule_id, rules, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else "`stoker rules` lists all"
    raise WrongUse(f"there is no rule `{rule_id}`", next_step=hint)
