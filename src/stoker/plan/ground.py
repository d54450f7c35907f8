"""What a plan stands on before it chooses anything. Pure."""

from __future__ import annotations

from stoker.engines import find
from stoker.facts.engine.flags import find_flag
from stoker.plan.room import Claim
from stoker.plan.situation import Facts, environment_facts, image_facts, machine_facts, model_facts
from stoker.records import Catalog, Environment, Machine, Model, NearCatalog, Record, Rule, Setting, Wish

Settings = dict[str, Setting]


class Ground(Record, frozen=True):
    """Everything that a plan stands on before it chooses: the wish, the facts, the rules, and which flags exist.

    `ranks` are the machines that the model is spread over, and `told` what this one of them is told of its place.
    """

    wish: Wish
    model: Model
    draft: Model | None
    machine: Machine
    rules: tuple[Rule, ...]
    engine: str
    engine_because: str
    image: str | None
    version: str | None
    near: NearCatalog = NearCatalog(None)
    running: tuple[Claim, ...] = ()
    environment: Environment | None = None
    ranks: int = 1
    told: tuple[Setting, ...] = ()

    @property
    def catalog(self) -> Catalog | None:
        """The flags of the engine's version, or of the nearest that is known."""
        return self.near.catalog

    def knows(self, flag: str) -> bool:
        """Tells whether the engine's version has a flag; where its flags are unknown, every flag may be one."""
        return self.catalog is None or find_flag(self.catalog, flag) is not None

    def facts(self) -> Facts:
        """Returns the facts by the rules' names."""
        facts: Facts = {"engine": self.engine, **(image_facts(self.image) if self.image else {})}
        facts |= environment_facts(self.environment)
        facts |= {"ranks": self.ranks, "executor": self.wish.executor}
        if self.version:
            facts["version"] = find(self.engine).release_of(self.version)
        return facts | machine_facts(self.machine) | model_facts(self.model, self.draft, self.machine)
