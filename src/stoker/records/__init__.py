"""Every frozen record that crosses a room, a file for each stretch of the way on which data flows.

wish + model facts + machine facts + rules -> plan -> launch spec -> handle -> service record -> proof
"""

from __future__ import annotations

from stoker.records.base import (
    GIB,
    MIB,
    Record,
    say_bytes,
)
from stoker.records.machine import (
    Disk,
    Gpu,
    Machine,
    Memory,
    MemoryHolder,
)
from stoker.records.model import (
    CacheKind,
    CacheLayers,
    MissingFile,
    Model,
    ModelFormat,
)
from stoker.records.plan import (
    LaunchSpec,
    Plan,
    ReasoningKind,
    Setting,
    SettingValue,
    SpeculationKind,
    Wish,
)
from stoker.records.recipe import (
    Catalog,
    Flag,
    FlagType,
    Recipe,
    RecipeKind,
)
from stoker.records.rule import (
    Evidence,
    Finding,
    Level,
    Rule,
    Scalar,
    Severity,
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
    Handle,
    Proof,
    SavedService,
    Service,
    State,
)
from stoker.records.views import (
    DaemonView,
    GatewayView,
    ServiceView,
    StatusView,
)

__all__ = [
    "AT_REST",
    "BEING_STARTED",
    "GIB",
    "MIB",
    "RESTING",
    "WITHOUT_ENGINE",
    "CacheKind",
    "CacheLayers",
    "Catalog",
    "DaemonView",
    "Disk",
    "Endpoint",
    "Evidence",
    "Finding",
    "Flag",
    "FlagType",
    "GatewayView",
    "Gpu",
    "Handle",
    "LaunchSpec",
    "Level",
    "Machine",
    "Memory",
    "MemoryHolder",
    "MissingFile",
    "Model",
    "ModelFormat",
    "Plan",
    "Proof",
    "ReasoningKind",
    "Recipe",
    "RecipeKind",
    "Record",
    "Rule",
    "SavedService",
    "Scalar",
    "Service",
    "ServiceView",
    "Setting",
    "SettingValue",
    "Severity",
    "SpeculationKind",
    "Standing",
    "State",
    "StatusView",
    "Test",
    "Topic",
    "Wish",
    "say_bytes",
]
