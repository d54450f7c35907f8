"""Whatever stands in a log: reading it ends, and no more time is told than has passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stoker.engines import find, names
from stoker.records import Timeline
from stoker.supervise.starts.timeline import Heard, TimelineWatch, read_timeline, recognise

LOGS = Path(__file__).parents[1] / "engines" / "logs"
REAL = sorted({line[:600] for log in LOGS.glob("*.log") for line in log.read_text().split("\n")})
STAMPS = [
    "INFO 12-31 23:59:59 ",
    "INFO 99-99 99:99:99 ",
    "[0000-00-00 00:00:00] ",
    "[9999-12-31 23:59:59 TP0] ",
    "9999999.99.999.999 I ",
]
PARTS = [
    "Load weight end. elapsed=",
    "torch.compile took ",
    " s in total",
    "[AutoTuner]: Tuning x: 100%|",
    "[99:99:99<",
    "\r",
    "\x1b[",
]

texts = st.one_of(
    st.sampled_from(REAL),
    st.text(max_size=60),
    st.builds(
        "".join, st.lists(st.one_of(st.sampled_from(STAMPS + PARTS), st.text("0123456789.:", max_size=12)), max_size=6)
    ),
)
arrivals = st.one_of(st.none(), st.floats(-1e12, 1e12))
lines = st.lists(st.tuples(arrivals, texts), max_size=40)
moments = st.one_of(st.none(), st.floats(-1e11, 1e11))


def check(timeline: Timeline) -> None:
    told = sum(stage.took_s or 0 for stage in timeline.stages)
    for stage in timeline.stages:
        assert stage.took_s is None or stage.took_s >= 0
        assert stage.line
    if timeline.total_s is not None:
        assert timeline.unexplained_s is not None
        slack = 0.01 * (len(timeline.stages) + 1) + 1e-9 * timeline.total_s
        assert told + timeline.unexplained_s == pytest.approx(timeline.total_s, abs=slack)


@pytest.mark.parametrize("engine", names())
@given(lines=lines, begun_at=moments, ready_at=moments)
@example(lines=[(None, "[9999-12-31 23:59:59] Init torch distributed begin.")], begun_at=1e11, ready_at=None)
def test_any_lines_in_any_order_give_a_sound_timeline(
    engine: str, lines: list[Heard], begun_at: float | None, ready_at: float | None
) -> None:
    check(read_timeline(find(engine), lines, begun_at, ready_at))
    assert recognise("\n".join(text for _, text in lines)) in (None, *names())


@pytest.mark.parametrize("log", sorted(LOGS.glob("*-h200-plain.log")), ids=lambda log: log.stem)
@given(data=st.data())
def test_a_real_log_that_lost_lines_gives_a_sound_timeline(log: Path, data: st.DataObject) -> None:
    whole = log.read_text().split("\n")
    lost = data.draw(st.sets(st.integers(0, len(whole) - 1), max_size=len(whole)))
    left: list[Heard] = [(None, text) for number, text in enumerate(whole) if number not in lost]
    check(read_timeline(find(log.name.split("-")[0]), left))


@pytest.mark.parametrize("engine", names())
@given(blocks=st.lists(st.tuples(st.lists(texts, max_size=8), st.floats(0, 1e4)), max_size=8))
def test_a_watch_takes_whatever_comes(engine: str, blocks: list[tuple[list[str], float]]) -> None:
    watch = TimelineWatch(find(engine), 1_795_132_800.0)
    for block, after_s in blocks:
        watch.add(block, 1_795_132_800.0 + after_s)
    check(watch.finish(1_795_142_800.0))
