"""The errors a person meets, each with what happened, why we think so and what to do.

StokerError              exit 1: a finding or a failed check
|- WrongUse              exit 2: the call or the configuration is off
|- Refused               exit 3: what was asked for would not work, so it was not begun
|- NotReadyInTime        exit 4: a wait ran into its limit
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar


class StokerError(Exception):
    """Something went wrong that a person can read about and act on."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, why: str = "", next_step: str = "", rule: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step
        self.rule = rule

    def __str__(self) -> str:
        """Returns the sentence, then the reason, the next step and the rule, a line each."""
        parts = (("why", self.why), ("next", self.next_step), ("rule", self.rule))
        return "\n".join([self.what, *(f"  {name}: {text}" for name, text in parts if text)])


class WrongUse(StokerError):
    """The command, its arguments or `stoker.toml` cannot be understood."""

    exit_code = 2


def near_miss(name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns the next step for a name that nothing has: the nearest that something has, or what is said otherwise."""
    import difflib  # only who mistyped a name waits for it

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else otherwise


def service_hint(name: str, models: Mapping[str, str | None], otherwise: str, say: str = "name") -> str:
    """Returns the next step for a name that no service has, where `models` tells what each serves.

    A model's own name leads to its service; `say` is what to do with that, such as `stoker down`.
    """
    service = next((service for service, model in models.items() if model == name), None)
    if service is None:
        return near_miss(name, models, otherwise)
    return f"{name} is the model of service {service}: {say} {service}"


def model_hint(name: str, models: Mapping[str, str | None], otherwise: str, say: str = "name") -> str:
    """Returns the next step for a name that no model has: a service's name leads to its model."""
    model = models.get(name)
    if model is None:
        return near_miss(name, filter(None, models.values()), otherwise)
    return f"{model} is the model of service {name}: {say} {model}"


class Refused(StokerError):
    """The wish was understood and would fail, so nothing was started."""

    exit_code = 3


class NotReadyInTime(StokerError):
    """A named limit ran out before the thing that was waited for happened."""

    exit_code = 4


BY_EXIT_CODE: dict[int, type[StokerError]] = {
    kind.exit_code: kind for kind in (StokerError, WrongUse, Refused, NotReadyInTime)
}
