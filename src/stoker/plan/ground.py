"""What a plan stands on before it chooses anything. Pure."""

from __future__ import annotations

from collections.abc import Callable

from stoker.plan.room import Claim
from stoker.plan.situation import Facts, environment_facts, image_facts, machine_facts, model_facts
from stoker.records import Environment, Machine, Model, Record, Rule, Setting, Wish

Settings = dict[str, Setting]
Knows = Callable[[str], bool]


class Ground(Record, frozen=True):
    """Everything that a plan stands on before it chooses: the wish, the facts, the rules, and which flags exist."""

    wish: Wish
    model: Model
    draft: Model | None
    machine: Machine
    rules: tuple[Rule, ...]
    engine: str
    engine_because: str
    image: str | None
    version: str | None
    running: tuple[Claim, ...] = ()
    environment: Environment | None = None

    def facts(self) -> Facts:
        """Returns the facts by the rules' names."""
        facts: Facts = {"engine": self.engine, **(image_facts(self.image) if self.image else {})}
        facts |= environment_facts(self.environment)
        if self.version:
            facts["version"] = self.version
        return facts | machine_facts(self.machine) | model_facts(self.model, self.draft, self.machine)
