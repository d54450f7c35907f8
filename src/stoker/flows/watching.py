"""Watches: looks at all services and the machine, holds what is seen against what is usual, tells, keeps and acts.

One look serves everybody: `/metrics` tells what the same look saw. A fault in here must end neither the daemon nor a service.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable

from stoker.config import Paths
from stoker.errors import StokerError
from stoker.flows.acting import Acts
from stoker.flows.exporting import Exporter
from stoker.flows.notices import Notices
from stoker.records import State, UsageRecord
from stoker.records.watching import Acted, Alert, Silence, WatchedService, WatchPoint, WatchSettings, WatchView
from stoker.store.watch import Batch, read_acts_since, read_alerts_since, read_learnt, read_silences, write_batch
from stoker.supervise.hands import Tools
from stoker.supervise.service import ServiceOwner
from stoker.supervise.supervisor import Supervisor
from stoker.watch.book import AlertBook, Clock
from stoker.watch.engine import ACCEPT_SLOTS
from stoker.watch.page_check import NO_NAMES, TOO_LARGE, UNREACHABLE
from stoker.watch.reading import Asked, Buckets, high_quantile, make_sample, method_of
from stoker.watch.samples import EngineSample, MachineSample
from stoker.watch.table import Looked, alerts_by_id
from stoker.watch.watcher import Watcher

POINT_S, LEARNT_S = 60, 1800.0
SILENT_S = 60.0  # only then an engine is asked for all that it counts: that is a hundred kilobytes to read
LOST = frozenset({UNREACHABLE, TOO_LARGE, NO_NAMES})
DOWN = frozenset({State.FAILED, State.WEDGED})
STALL_LOOKS = 20
DAY_S = 86400.0
logger = logging.getLogger("stoker.watch")
