"""What has to hold of every way to draft: it says what the model alone says, and is measured as the engine counts itself."""

from __future__ import annotations

import fcntl
from pathlib import Path

import msgspec
import pytest

from gpu_home import TIE_NATS, GpuHome, Said, partings
from stoker.records import CellResult, SpeculationSeen

LEAST_ACCEPT_LENGTH = 1.05
AGAIN_APART = 0.1  # the same prompts once more: where two tokens are as likely the words may be others
LAST_APART = 0.05  # all steps but each answer's last, which its end may cut
LEARNS = ("ngram",)  # from all that SGLang says: what is asked once more is drafted otherwise, and that is said
# SGLang looks for an answer's limit before its end: where one step accepts the end and reaches the limit, what was accepted
# behind the end is said too (sgl-project/sglang#31599, seen in 0.5.16).
RUNS_ON = ("sglang",)


def say_alone(home: GpuHome, factory: pytest.TempPathFactory) -> list[Said]:
    """Returns what the model says without drafts: asked once for all processes of a run, others wait until it is known."""
    base = factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base  # each of pytest-xdist's processes has its own
    kept = shared / f"{home.engine.name}.said"
    with Path(f"{kept}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            home.bring_up("plain")
            kept.write_bytes(msgspec.msgpack.encode(home.say_greedily("plain", with_gaps=True)))
    return msgspec.msgpack.decode(kept.read_bytes(), type=list[Said])


def check_same_words(home: GpuHome, service: str, plain: list[Said], guessed: list[Said]) -> None:
    """Fails where greedy answers with drafts are others than without."""
    gaps = partings(plain, guessed)
    beyond = {place for place in gaps if home.engine.name in RUNS_ON and runs_on(plain[place], guessed[place])}
    parted = {place: gap for place, gap in gaps.items() if gap > TIE_NATS[home.engine.number] and place not in beyond}
    home.note(
        "exactness", service, prompts=len(plain), differing=len(parted), beyond_end=len(beyond),
        ties=len(gaps) - len(parted) - len(beyond),
        most_nats=max((gap for place, gap in gaps.items() if place not in beyond), default=None),
        apart=[(place, gap, plain[place].text, guessed[place].text) for place, gap in gaps.items()],
    )  # fmt: skip
    assert parted == {}


def runs_on(plain: Said, guessed: Said) -> bool:
    """Tells whether the second is the first, which was whole, and more up to the limit."""
    return plain.is_whole and not guessed.is_whole and guessed.text.startswith(plain.text)


def check_measured_as_counted(home: GpuHome, service: str) -> None:
    """Fails where what is measured of drafts is not what the engine counted."""
    for content in ("code", "prose"):
        run, grown, by_position = home.measure(service, content)
        [cell] = run.cells
        told = cell.speculation
        assert (cell.failed, told is not None) == (0, True), cell.warnings
        assert told is not None
        medians = {one.name: one.median for one in cell.figures}
        home.note(
            "speculation", service, content=content, tok_s=medians["request_decode_tps"], ttft_s=medians["ttft_s"],
            accept_rate=told.accept_rate, accept_length=told.accept_length, by_position=told.accept_rate_by_position,
            source=told.source, warnings=cell.warnings,
        )  # fmt: skip
        steps = grown.get("drafts_total") or grown["verify_calls_total"]
        assert told.verify_steps == steps > 0
        if "draft_tokens_total" in grown:
            assert (told.draft_tokens, told.accepted_tokens) == (grown["draft_tokens_total"], grown["accepted_tokens_total"])
        else:  # SGLang counts verify calls and what they gave; the places are of the streams, or of some more replies
            assert told.accept_length == pytest.approx(grown["generated_tokens_total"] / steps)
            check_positions(service, cell, told)
        if by_position:
            assert told.accept_rate_by_position == tuple(count / steps for count in by_position)
        assert told.accept_length is not None
        assert told.accept_length > LEAST_ACCEPT_LENGTH or "ngram" in service


def check_positions(service: str, cell: CellResult, told: SpeculationSeen) -> None:
    """Fails where what is told by position is not of what was counted, or is not told without a word why."""
    if told.accept_rate_by_position is None:
        assert service in LEARNS
        assert any("by position" in text for text in cell.warnings)
        return
    assert told.accept_rate is not None and told.accept_length is not None
    apart = AGAIN_APART if "more repl" in told.source else LAST_APART
    assert 1 + sum(told.accept_rate_by_position) == pytest.approx(told.accept_length, rel=apart)
