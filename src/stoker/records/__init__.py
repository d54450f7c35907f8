"""Every frozen record that crosses a room, a file for each stretch of the way on which data flows.

wish + model facts + machine facts + rules -> plan -> launch spec -> handle -> service record -> proof
"""

from __future__ import annotations

from stoker.records.adopt import (
    Adoption,
    AdoptView,
    AdoptWish,
)
from stoker.records.base import (
    GIB,
    MIB,
    Record,
    say_bytes,
    say_s,
)
from stoker.records.bench import (
    FIGURES,
    Arrivals,
    BenchCell,
    BenchFigure,
    BenchKnee,
    BenchLoad,
    BenchRepeat,
    BenchRun,
    BenchSlo,
    BenchSubject,
    CellResult,
    ClientSeen,
    CountedBy,
    Ended,
    FigurePer,
    MachineSeen,
    RequestSeen,
    SeriesPoint,
    SpeculationSeen,
    TokensRead,
)
from stoker.records.bench_runs import (
    BenchRunLine,
    CellChange,
    ChangeVerdict,
    Comparison,
    Difference,
    FigureChange,
    KeptRun,
)
from stoker.records.clients import (
    ClientConfig,
    ClientFact,
    ClientReport,
    ClientSetting,
    ClientUse,
    GatewayHere,
    McpServer,
    McpStart,
    McpTransport,
    ServedModel,
    Written,
)
from stoker.records.diagnosis import (
    Cause,
    Confidence,
    Diagnosis,
    LogLine,
    Noise,
)
from stoker.records.door import (
    ANY,
    DoorSettings,
    DoorView,
    QueueLimits,
)
from stoker.records.fetch import (
    Completed,
    Fetched,
    FetchSettings,
    FetchView,
    LeftOut,
    Pin,
)
from stoker.records.filters import (
    FilterView,
)
from stoker.records.flags import (
    CatalogChanges,
    Changed,
    FlagMatch,
    HowFound,
    Lifetime,
    NearCatalog,
    Renamed,
    Suggestion,
)
from stoker.records.keys import (
    PRIORITIES,
    KeyState,
    KeyView,
    KeyWish,
    NamedKey,
    NewKey,
    RevokedKey,
)
from stoker.records.knowledge import (
    Found,
    Hit,
    KnowledgeKind,
    KnowledgeSettings,
    Passage,
)
from stoker.records.launch import (
    AtExit,
    ContainerLaunch,
    ImageOverlay,
    InstallFinding,
    InstallView,
    Mount,
    Pairs,
    Publish,
    RenderedFile,
    UninstallView,
    UnitAction,
    UnitKind,
    UnitLaunch,
    VerifyView,
)
from stoker.records.loading import (
    LoadRate,
    ReadAheadResult,
)
from stoker.records.machine import (
    CardMemory,
    ContainerEngine,
    Disk,
    Environment,
    Gpu,
    GpuProcess,
    InstalledEngine,
    Listener,
    Machine,
    MachineDetails,
    Memory,
    MemoryHolder,
    ReadRate,
)
from stoker.records.model import (
    CacheKind,
    CacheLayers,
    MissingFile,
    Model,
    ModelFormat,
    ModelLayout,
)
from stoker.records.plan import (
    Abilities,
    AdoptedProcess,
    Alternative,
    Budget,
    BudgetLine,
    LaunchSpec,
    Plan,
    Pool,
    ReasoningKind,
    Report,
    Setting,
    SettingValue,
    SpeculationKind,
    Tiers,
    Way,
    Wish,
)
from stoker.records.recipe import (
    Catalog,
    Flag,
    FlagType,
    Recipe,
    RecipeKind,
    Spelling,
)
from stoker.records.rule import (
    Evidence,
    Finding,
    Level,
    Overlay,
    Rule,
    Scalar,
    Severity,
    StageName,
    Standing,
    Test,
    Topic,
)
from stoker.records.service import (
    AT_REST,
    BEING_STARTED,
    RESTING,
    WITHOUT_ENGINE,
    Endpoint,
    GoodImage,
    Handle,
    Measured,
    Proof,
    SavedService,
    SavedSwitch,
    Service,
    State,
)
from stoker.records.speed import (
    CapacityView,
    DraftingView,
    MeasuredView,
    Prediction,
    ReadPart,
    RowPrediction,
    RowsView,
    SpeedView,
    SpentPart,
)
from stoker.records.timeline import (
    Loading,
    LogForm,
    Stage,
    StageRow,
    StageSign,
    Start,
    Timeline,
    TimelineView,
)
from stoker.records.tune import (
    Band,
    LengthsBy,
    Objective,
    Seen,
    Sighting,
    Tried,
    TriedWay,
    TuneView,
)
from stoker.records.usage import (
    UsageBy,
    UsageLine,
    UsageRecord,
    UsageView,
)
from stoker.records.verify import (
    CheckResult,
    Exchange,
    KeptVerification,
    Occasion,
    ProbeResult,
    Target,
    Verdict,
    Verification,
    worst,
)
from stoker.records.views import (
    DaemonView,
    GatewayView,
    ServiceView,
    StatusView,
    SwitchOutcome,
    SwitchView,
)
from stoker.records.workflow import (
    STOP,
    THEN,
    IdleSettings,
    IdleView,
    RunningView,
    RunOutcome,
    RunPlan,
    RunState,
    RunView,
    StepOutcome,
    StepRun,
    Workflow,
    WorkflowStep,
)

__all__ = [
    "ANY", "AT_REST", "BEING_STARTED", "FIGURES", "GIB", "MIB", "PRIORITIES", "RESTING", "STOP", "THEN",
    "WITHOUT_ENGINE", "Abilities", "AdoptView", "AdoptWish", "AdoptedProcess", "Adoption", "Alternative", "Arrivals",
    "AtExit", "Band", "BenchCell", "BenchFigure", "BenchKnee", "BenchLoad", "BenchRepeat", "BenchRun", "BenchRunLine",
    "BenchSlo", "BenchSubject", "Budget", "BudgetLine", "CacheKind", "CacheLayers", "CapacityView", "CardMemory", "Catalog",
    "CatalogChanges", "Cause", "CellChange", "CellResult", "ChangeVerdict", "Changed", "CheckResult", "ClientConfig",
    "ClientFact", "ClientReport", "ClientSeen", "ClientSetting", "ClientUse", "Comparison", "Completed", "Confidence",
    "ContainerEngine", "ContainerLaunch", "CountedBy", "DaemonView", "Diagnosis", "Difference", "Disk", "DoorSettings",
    "DoorView", "DraftingView", "Ended", "Endpoint", "Environment", "Evidence", "Exchange", "FetchSettings", "FetchView",
    "Fetched", "FigureChange", "FigurePer", "FilterView", "Finding", "Flag", "FlagMatch", "FlagType", "Found",
    "GatewayHere", "GatewayView", "GoodImage", "Gpu", "GpuProcess", "Handle", "Hit", "HowFound", "IdleSettings",
    "IdleView", "ImageOverlay", "InstallFinding", "InstallView", "InstalledEngine", "KeptRun", "KeptVerification",
    "KeyState", "KeyView", "KeyWish", "KnowledgeKind", "KnowledgeSettings", "LaunchSpec", "LeftOut", "LengthsBy",
    "Level", "Lifetime", "Listener", "LoadRate", "Loading", "LogForm", "LogLine", "Machine", "MachineDetails",
    "MachineSeen", "McpServer", "McpStart", "McpTransport", "Measured", "MeasuredView", "Memory", "MemoryHolder",
    "MissingFile", "Model", "ModelFormat", "ModelLayout", "Mount", "NamedKey", "NearCatalog", "NewKey", "Noise",
    "Objective", "Occasion", "Overlay", "Pairs", "Passage", "Pin", "Plan", "Pool", "Prediction", "ProbeResult", "Proof",
    "Publish", "QueueLimits", "ReadAheadResult", "ReadPart", "ReadRate", "ReasoningKind", "Recipe", "RecipeKind",
    "Record", "Renamed", "RenderedFile", "Report", "RequestSeen", "RevokedKey", "RowPrediction", "RowsView", "Rule",
    "RunOutcome", "RunPlan", "RunState", "RunView", "RunningView", "SavedService", "SavedSwitch", "Scalar", "Seen",
    "SeriesPoint", "ServedModel", "Service", "ServiceView", "Setting", "SettingValue", "Severity", "Sighting",
    "SpeculationKind", "SpeculationSeen", "SpeedView", "Spelling", "SpentPart", "Stage", "StageName", "StageRow",
    "StageSign", "Standing", "Start", "State", "StatusView", "StepOutcome", "StepRun", "Suggestion", "SwitchOutcome",
    "SwitchView", "Target", "Test", "Tiers", "Timeline", "TimelineView", "TokensRead", "Topic", "Tried", "TriedWay",
    "TuneView",
    "UninstallView", "UnitAction", "UnitKind", "UnitLaunch", "UsageBy", "UsageLine", "UsageRecord", "UsageView",
    "Verdict", "Verification", "VerifyView", "Way", "Wish", "Workflow", "WorkflowStep", "Written", "say_bytes", "say_s",
    "worst",
]  # fmt: skip
