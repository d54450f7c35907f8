"""What the dashboard's own views show: plans side by side, all verifications, runs of benchmarks, settings of clients."""

from __future__ import annotations

from stoker.records.base import Record
from stoker.records.bench import BenchRun
from stoker.records.bench_pictures import Chart
from stoker.records.bench_runs import Difference
from stoker.records.clients import ClientConfig
from stoker.records.plan import Plan
from stoker.records.speed import SpeedView


class PlanChange(Record, frozen=True):
    """Something that another plan has otherwise: `here` is what the service runs by, None where it is not set there.

    `because` is the other plan's reason, or this one's where the other has none.
    """

    name: str
    here: str | None
    there: str | None
    because: str = ""


class PlanBeside(Record, frozen=True):
    """Another plan of the same service: what `stoker.toml` gives now, or one by which it was READY before."""

    plan_id: str
    model: str
    changes: tuple[PlanChange, ...]


class PlansView(Record, frozen=True):
    """A service's plan, beside others. None is unknown, and `no_next` or `no_speed` says why.

    `next` is the plan that a start by name would have now; `former` the one that `rollback` leads to.
    """

    plan: Plan
    next: PlanBeside | None = None
    no_next: str = ""
    former: PlanBeside | None = None
    speed: SpeedView | None = None
    no_speed: str = ""


class ProbeView(Record, frozen=True):
    """A column of the matrix: what a probe expects, and what a failure means to clients."""

    name: str
    expects: str
    means: str
    deep: bool


class VerdictCell(Record, frozen=True):
    """What a probe found the last time that it was asked; `at` is when that verification began, and so its name."""

    probe: str
    verdict: str
    at: float
    occasion: str
    is_of_this_plan: bool


class VerdictRow(Record, frozen=True):
    """A service and what is known of it; `why_not` says why it cannot be verified now, None where it can."""

    service: str
    model: str
    why_not: str | None
    cells: tuple[VerdictCell, ...]


class ProvingView(Record, frozen=True):
    """A verification that was asked for here: `number` of `count` probes are begun, `probe` is the last of them.

    `outcome` is None while it is under way, then its verdict, or `stopped`, or `not done`; `why` says more.
    """

    service: str
    since: float
    budget_s: float
    count: int
    number: int = 0
    probe: str = ""
    outcome: str | None = None
    why: str = ""


class MatrixView(Record, frozen=True):
    """All services by all probes, and the last verification that was asked for here."""

    probes: tuple[ProbeView, ...]
    rows: tuple[VerdictRow, ...]
    proving: ProvingView | None


class ProveWish(Record, frozen=True):
    """What to verify: everything (`deep`) or the default set, for at most so long; None is as usual."""

    deep: bool = False
    budget_s: float | None = None


class FigureShown(Record, frozen=True):
    """A figure of a cell: its median with its interval, or another tool's mean; `meaning` says what it is."""

    name: str
    meaning: str
    median: float
    low: float | None
    high: float | None
    is_mean: bool


class CellShown(Record, frozen=True):
    """A cell of a run in a few words, with the figures that people decide by and what is doubtful of it."""

    name: str
    figures: tuple[FigureShown, ...]
    doubts: tuple[str, ...] = ()


class RunShown(Record, frozen=True):
    """A run without its cells, its cells as a table, and its charts; `missing` cells were asked for and not measured."""

    run: BenchRun
    cells: tuple[CellShown, ...]
    missing: int
    charts: tuple[Chart, ...]


class ChangeShown(Record, frozen=True):
    """How a figure changed, in words: 'TTFT, ms', '31', '27', 'faster by 12 % (9 to 15)'."""

    figure: str
    a: str
    b: str
    says: str
    verdict: str


class CellCompared(Record, frozen=True):
    """A cell that both runs have."""

    name: str
    changes: tuple[ChangeShown, ...]
    doubts: tuple[str, ...]


class RunsCompared(Record, frozen=True):
    """Run b beside run a, as `stoker bench compare` says it; `only_a` and `only_b` are cells that the other lacks."""

    a: BenchRun
    b: BenchRun
    differences: tuple[Difference, ...]
    doubts: tuple[str, ...]
    overall: tuple[ChangeShown, ...]
    cells: tuple[CellCompared, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


class ClientsView(Record, frozen=True):
    """What makes each client ask this machine's gateway for a model, and what makes agents start `stoker mcp`.

    `model` is None where several are there and none was named, and `configs` are empty then. `key_file` is where the key
    lies; the key is nowhere in this.
    """

    models: tuple[str, ...]
    model: str | None
    key_file: str
    configs: tuple[ClientConfig, ...]
    agents: tuple[ClientConfig, ...]
