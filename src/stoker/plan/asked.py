"""Sorts what a user said: each thing once, numbers as numbers, the engine's words by their real names. Pure.

A wish and its `flags` may say the same thing in two ways. Where they disagree, nobody knows what was meant: that is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.engines import Engine
from stoker.errors import Refused
from stoker.facts.engine.flags import find_flag
from stoker.plan.ground import Settings
from stoker.plan.wishes import DRAFTING, USER
from stoker.records import Catalog, Record, Setting, SettingValue, Wish

# Flags that Stoker says itself, and the key of the service's table that decides them; empty: none may.
OWN_FLAGS = {
    "--model": "model", "--model-path": "model", "--served-model-name": "served_name", "--port": "port", "--host": "",
    "--api-key": "", "--api-key-file": "", "--alias": "served_name",
}  # fmt: skip
FLAG = re.compile(r"--[a-z0-9][a-z0-9-]*(\.[\w.-]+)?|-[A-Za-z]{1,3}")
WHOLE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
UNITS = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "K": 1024, "M": 1024**2, "G": 1024**3}
MOST = 2**40
FIELDS = {"context": "context", "parallel": "parallel", "memory_share": "memory_share", "batch_tokens": "batch_tokens"}
SPECULATIVE = ("--speculative", "--spec-")


class Asked(Record, frozen=True):
    """What the user said: neutral settings by their neutral names, and everything else in the engine's words."""

    numbers: Settings
    flags: Settings

    @property
    def drafts_itself(self) -> bool:
        """Whether the user's own flags say how to speculate."""
        return any(name.startswith(SPECULATIVE) for name in self.flags)


def sort_wish(wish: Wish, engine: Engine, catalog: Catalog | None) -> Asked:
    """Returns what a wish says, each thing once; raises Refused where it says two things of one, or none that can be."""
    flags: Settings = {}
    for written, value in wish.flags.items():
        name = _flag_name(written)
        check_own(written)
        real, said = _by_catalog(name, value, catalog)
        flags[real] = Setting(real, said, USER)
    numbers = {name: _number(name, wish, flags, engine) for name in FIELDS}
    asked = Asked({name: one for name, one in numbers.items() if one}, flags | _variables(wish))
    beside: list[object] = [wish.draft, *(getattr(wish, name) for name in DRAFTING)]
    if asked.drafts_itself and (wish.speculation != "auto" or any(one is not None for one in beside)):
        raise Refused(
            "the service says twice how to draft: in `flags` and by itself",
            why=f"`speculation` is '{wish.speculation}', and `flags` names {_first(flags)}",
            next_step="keep one of them",
        )
    return asked


def _first(flags: Mapping[str, Setting]) -> str:
    return next(name for name in flags if name.startswith(SPECULATIVE))


def _flag_name(written: str) -> str:
    flag, dot, key = written.strip().lstrip("-").partition(".")
    name = f"--{flag.replace('_', '-')}{dot}{key}"
    if FLAG.fullmatch(name) is None:
        raise Refused(f"`flags` has {written!r}, which cannot be a flag", next_step="write its long name without dashes")
    return name


def check_own(written: str, own: Mapping[str, str] = OWN_FLAGS) -> None:
    """Raises Refused for a flag that Stoker says itself; `own` names the key of the table that decides it."""
    name = _flag_name(written)
    if name not in own:
        return
    instead = own[name]
    why = f"Stoker says it itself, from `{instead}`" if instead else "the engine is to be reached through the gateway alone"
    raise Refused(f"`flags` sets {written}", why=why, next_step=f"set `{instead}`" if instead else "leave it out")


def _by_catalog(name: str, value: SettingValue, catalog: Catalog | None) -> tuple[str, SettingValue]:
    """The flag's real name, and a value that can be said: `false` for a switch is the name of its opposite."""
    match = None
    if catalog is not None and "." not in name:
        match = find_flag(catalog, name) or find_flag(catalog, name[1:])  # `tp` may be --tp or -tp
    if match is not None and match.how != "negated":
        name = match.flag.name
    if value is not False or "." in name:
        return name, value
    if match is not None and match.flag.negated:
        return match.flag.negated[0], True
    if match is not None and match.flag.type != "switch":
        return name, "false"
    raise Refused(
        f"`flags` sets {name} to false, which has no word of its own",
        why="a switch that is left out is off, unless the engine has a word for its opposite",
        next_step=f"leave it out, or write no{name[1:]} = true where the engine has that",
    )


def _number(name: str, wish: Wish, flags: Settings, engine: Engine) -> Setting | None:
    field = getattr(wish, FIELDS[name])
    flag = next((flag for flag in engine.spelling.get(name, ()) if flag in flags), None)
    if flag is None:
        return None if field is None else Setting(name, field, USER)
    value = _share(flags[flag]) if name == "memory_share" else whole_of(flags[flag])
    if field is not None and field != value:
        raise Refused(
            f"`{FIELDS[name]}` is {field:,} and `flags` says {flag} {flags[flag].value}",
            why="nobody knows which of them is meant",
            next_step="say it once",
        )
    flags.pop(flag)
    return Setting(name, value, USER)


def whole_of(setting: Setting) -> int:
    """Returns a whole number as engines take it: 8192, '8192', '8k' and '8K'; raises Refused where it is none."""
    found = WHOLE.fullmatch(str(setting.value).strip().replace("_", ""))
    number = round(float(found[1]) * UNITS[found[2]]) if found and len(found[1]) < 16 else 0
    if isinstance(setting.value, bool) or not 1 <= number <= MOST:
        raise Refused(
            f"`flags` sets {setting.name} to {setting.value!r}",
            why="the memory is counted by it, so it has to be a whole number",
            next_step="give a whole number, such as 8192 or '8k'",
        )
    return number


def _share(setting: Setting) -> float:
    try:
        share = float(str(setting.value))
    except ValueError:
        share = 0.0
    if isinstance(setting.value, bool) or not 0 < share <= 1:
        raise Refused(f"`flags` sets {setting.name} to {setting.value!r}", next_step="give a share between 0 and 1")
    return share


def _variables(wish: Wish) -> Settings:
    return {f"${name}": Setting(f"${name}", value, USER) for name, value in wish.environment.items()}
