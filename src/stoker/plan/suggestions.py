"""Puts models in the order in which somebody with a new machine should try them, each with its reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker.plan.speed.catalog import known_shapes, words_of
from stoker.plan.speed.layout import plan_layout
from stoker.plan.speed.memory import MemoryOf
from stoker.plan.speed.outlook import Question, predict_speed
from stoker.plan.speed.prediction import load_fit
from stoker.plan.speed.shape import PARTS, Shape
from stoker.plan.speed.work import Served
from stoker.records import Model, Report, SpeedView, say_bytes
from stoker.records.suggesting import Reach, Suggestion
from stoker.rules.measured import Measured, load_measured

FLUENT_TOK_S = 20.0  # about twice as fast as people read; what is faster than that is worth less than a larger model
ORDER = (
    "First what may be started now. There, of those that should write 20 tokens a second or more the largest comes first,"
    " since faster than that hardly anybody reads; then the slower ones, the fastest first; then those of unknown speed."
)
MOST_PUBLISHED = 6
CACHE_SHARE = 0.85  # of the memory for engines: the rest is for cache and buffers
SIXTEEN_BITS = 2.0
REACHES: tuple[Reach, ...] = ("now", "waits", "blocked", "elsewhere")


def rank(suggestions: Iterable[Suggestion]) -> tuple[Suggestion, ...]:
    """Returns them in the order that ORDER tells."""
    return tuple(sorted(suggestions, key=_place))


def _place(one: Suggestion) -> tuple[object, ...]:
    tok_s = _tok_s(one)
    size = one.parameters or 0
    if tok_s is None:
        return REACHES.index(one.reach), 2, size, one.target  # of those nobody knows, the small ones are rather bearable
    fluent = tok_s >= FLUENT_TOK_S
    return REACHES.index(one.reach), 0 if fluent else 1, -size if fluent else 0, -tok_s, one.target


def _tok_s(one: Suggestion) -> float | None:
    return one.speed.decode_tok_s if one.speed is not None else one.limit_tok_s


def suggest_model(target: str, model: Model, report: Report, reach: Reach, obstacle: str) -> Suggestion:
    """Returns what is to be said of a model that lies here, by its report."""
    speed, budget = report.speed, report.budget
    measured = [f"others measured {one.decode_tok_s} tok/s ({one.source})" for one in report.alternatives[:1]]
    usable = f" of {say_bytes(budget.usable_bytes)} for engines" if budget else ""
    because = (
        *_say_speed(speed),
        f"needs {say_bytes(report.plan.memory_need_bytes)}{usable}",
        report.engine_because,
        *measured,
    )
    plan = report.plan
    return Suggestion(
        service=plan.service, target=target, reach=reach, engine=plan.engine, quantisation=model.quantisation or "",
        parameters=model.parameters, need_bytes=plan.memory_need_bytes, speed=speed.expected if speed else None,
        limit_tok_s=speed.limit_tok_s if speed else None, because=because, obstacle=obstacle,
    )  # fmt: skip


def suggest_refused(service: str, target: str, model: Model, obstacle: str) -> Suggestion:
    """Returns what is to be said of a model that lies here and that no plan can be made for."""
    because = (f"its weights take {say_bytes(model.file_bytes)}",)
    return Suggestion(
        service=service, target=target, reach="blocked", engine="", quantisation=model.quantisation or "",
        parameters=model.parameters, need_bytes=None, speed=None, limit_tok_s=None, because=because, obstacle=obstacle,
    )  # fmt: skip


def _say_speed(speed: SpeedView | None) -> Iterator[str]:
    if speed is None:
        yield "how fast is not known: the bandwidth of this machine's memory is not in the list"
    elif speed.expected is None:
        yield f"at most {speed.limit_tok_s:.0f} tok/s, by the memory's bandwidth; nothing more is known of such a machine"
    else:
        one = speed.expected
        yield f"expected {one.decode_tok_s:.3g} tok/s ({one.low_tok_s:.3g} to {one.high_tok_s:.3g}), one request at a time"


def suggest_published(memory: MemoryOf, usable_bytes: int) -> tuple[Suggestion, ...]:
    """Returns models that others measured on such a machine and that fit it, the best few; their files are not here."""
    found: dict[str, Suggestion] = {}
    for row in load_measured():
        shape = _shape_of(row.model)
        if shape is None or row.speculation != "off":
            continue
        one = _published(row, shape, memory, usable_bytes)
        known = found.get(shape.names[0])
        if one is not None and (known is None or _place(one) < _place(known)):
            found[shape.names[0]] = one
    return rank(found.values())[:MOST_PUBLISHED]


def _shape_of(name: str) -> Shape | None:
    words = words_of(name)
    return next((shape for shape in known_shapes() if any(words_of(one) <= words for one in shape.names)), None)


def _published(row: Measured, shape: Shape, memory: MemoryOf, usable_bytes: int) -> Suggestion | None:
    layout = plan_layout(shape, row.quantisation, row.engine, None)
    weights = int(sum(shape.parameters(part) * layout.bytes_of(part) for part in PARTS) + shape.embed * 1e6 * SIXTEEN_BITS)
    if weights > CACHE_SHARE * usable_bytes:
        return None
    speed = predict_speed(
        Question(Served(shape, layout, row.engine)), row.model, row.quantisation, memory.gpu, memory, load_fit()
    )
    measured = f"others measured {row.most_tok_s:g} tok/s with {row.engine} {row.version}".rstrip() + f" ({row.source})"
    return Suggestion(
        service="", target=row.model, reach="elsewhere", engine=row.engine, quantisation=row.quantisation,
        parameters=int(shape.total_b * 1e9), need_bytes=weights, speed=speed.expected, limit_tok_s=speed.limit_tok_s,
        because=(*_say_speed(speed), f"its weights take {say_bytes(weights)}", measured),
        obstacle="its files are not here: `stoker fetch ORGANISATION/NAME` gets a release of it",
    )  # fmt: skip
