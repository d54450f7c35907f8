"""What `[watch.act]` does in a real daemon: through the gate, within bounds, and told with its reason."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from home import Home, wait_for
from stoker.config import demo_model
from stoker.records import State
from stoker.records.watching import Acted
from stoker.store.audit import read_audit
from stoker.store.watch import Batch, read_acts_since, write_batch
from stoker.watch.table import find_alert
from useless_drafts import write_useless_gguf

WATCH = "[watch]\nevery_s = 1.0\n{more}\n[watch.act]\n{acts}\n"
CANARIES = "canary_every_s = 1.0\ncanary_quiet_s = 0.0"
SERVICE = '[service.coder]\nmodel = "{model}"\nspeculation = "draft"\ndraft = "{draft}"\ngate = []\nreasoning = "off"\n'
LIMITS = "restart_window_s = 3600"
DRAFT = Path(demo_model()).with_name("stoker-demo-draft-Q8_0.gguf")


def kill_twice(home: Home, name: str) -> None:
    """Kills a service's engine twice, which is an alert by itself."""
    for _ in range(2):
        home.await_state(name, State.READY)
        pid, before = home.service(name).pid, home.service(name).restarts
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for("a restart", lambda before=before: home.service(name).restarts > before)  # type: ignore[misc]


def acts(home: Home, count: int) -> list[Acted]:
    """What was done, the first first, once it is so much."""
    file = home.paths.watch_database
    done = wait_for("an act", lambda: found if len(found := read_acts_since(file, 0.0)) >= count else None)
    return list(reversed(done))


def told(home: Home, *words: str) -> list[dict[str, Any]]:
    """The acts that a verb tells."""
    found: list[dict[str, Any]] = json.loads(home.run(*words, "--json", code=None).stdout)["acts"]
    return found


def up_with(home: Home, draft: Path, watch: str) -> str:
    """Has the real engine serve with a draft; returns the plan's id."""
    home.configure(watch, limits=LIMITS)
    home.paths.config.write_text(home.paths.config.read_text() + SERVICE.format(model=demo_model(), draft=draft))
    home.run("up", "coder")
    return home.service("coder").plan_id


def rounds(home: Home) -> int:
    """How many rounds of canary prompts were answered."""
    return home.paths.daemon_log.read_text().count("service=coder canary ttft_s=")


def spoil_when_learnt(home: Home, draft: Path) -> None:
    """Damages a draft's file once canary prompts know what it is worth, and has the engine read it again."""
    already = rounds(home)
    wait_for("rounds that are learnt", lambda: rounds(home) >= already + 4)
    useless = draft.with_suffix(".useless")
    write_useless_gguf(DRAFT, useless)
    useless.replace(draft)
    pid = home.service("coder").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_a_real_engine_is_started_anew_and_everybody_who_asks_learns_why(home: Home, tmp_path: Path) -> None:
    draft = tmp_path / "draft.gguf"
    shutil.copyfile(DRAFT, draft)
    up_with(home, draft, WATCH.format(more=CANARIES, acts='canary-drafts-worse = "restart"'))
    spoil_when_learnt(home, draft)
    (done,) = acts(home, 1)
    assert (done.alert, done.about, done.act) == ("canary-drafts-worse", "coder", "restart")
    assert "of the drafts were accepted for the same prompts of which" in done.why
    assert done.outcome == "it is restarted, once its requests have ended and its memory is back"
    wait_for("the restart", lambda: home.service("coder").restarts == 2)  # the first was for the kill
    home.await_state("coder", State.READY)
    assert home.run("ask", "Who are you?", "--max-tokens", "8").stdout
    assert told(home, "alerts")[0]["outcome"] == told(home, "history", "coder")[0]["outcome"] == done.outcome
    assert "restart for canary-drafts-worse" in home.run("alerts", code=None).stdout
    assert "alert=canary-drafts-worse service=coder act=restart" in home.paths.daemon_log.read_text()
    [recorded] = read_audit(home.paths.audit)
    assert (recorded.who, recorded.act, recorded.service) == ("watch.act", "restart", "coder")
    assert recorded.plan_id == home.service("coder").plan_id
    assert recorded.outcome == f"begun: {find_alert(done.alert).title.format(service='coder')}: {done.why}"


def test_speculation_is_switched_off_and_the_engine_serves_on_without_drafts(home: Home) -> None:
    home.configure(WATCH.format(more="", acts='service-restarted = "speculation off"'), limits=LIMITS)
    home.paths.config.write_text(home.paths.config.read_text() + SERVICE.format(model=demo_model(), draft=DRAFT))
    home.run("up", "coder")
    before = home.service("coder").plan_id
    kill_twice(home, "coder")
    (done,) = acts(home, 1)
    assert done.outcome == "it is started anew without speculation"
    wait_for("another plan", lambda: home.service("coder").plan_id != before)
    pid = home.await_state("coder", State.READY).pid
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    assert b"--model" in words and b"--spec" not in words
    assert home.run("ask", "Who are you?", "--max-tokens", "8").stdout


def test_a_draft_that_went_bad_is_found_while_nobody_asks_and_the_plan_before_it_comes_back(
    home: Home, tmp_path: Path
) -> None:
    draft, watch = tmp_path / "draft.gguf", WATCH.format(more=CANARIES, acts='canary-drafts-worse = "rollback"')
    shutil.copyfile(DRAFT, draft)
    good = up_with(home, DRAFT, watch)
    assert up_with(home, draft, watch) != good
    spoil_when_learnt(home, draft)
    (done,) = acts(home, 1)
    assert (done.alert, done.act, done.about) == ("canary-drafts-worse", "rollback", "coder")
    wait_for("the plan before", lambda: home.service("coder").plan_id == good)
    home.await_state("coder", State.READY)
    already = rounds(home)
    wait_for("a round by the plan before", lambda: rounds(home) > already)
    # The first one after a start was seen without a rate, on a busy machine.
    wait_for("drafts that are accepted again", lambda: (accept_rate(home) or 0.0) > 0.3)


def accept_rate(home: Home) -> float | None:
    """Returns what the last canary's drafts came to."""
    canary = next(one.canary for one in home.daemon.watch().services)
    return None if canary is None else canary.accept_rate


def test_one_fault_with_two_alerts_has_one_act(home: Home) -> None:
    both = 'canary-unanswered = "restart"\nservice-restarted = "stop"'
    home.configure(WATCH.format(more=CANARIES, acts=both), limits=LIMITS)
    home.add_fake("lost", refuses=True)
    home.run("up", "lost", code=1)  # it is READY, and refuses the first question too
    (first,) = acts(home, 1)
    assert (first.alert, first.act) == ("canary-unanswered", "restart")
    assert "it answered HTTP 500" in first.why
    wait_for("the restart", lambda: home.service("lost").restarts == 1)
    pid = home.await_state("lost", State.READY).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    held = acts(home, 2)[1]
    assert (held.alert, held.act) == ("service-restarted", "stop")
    assert held.outcome == (
        "nothing: restart was done for canary-unanswered 0 minutes ago, and has 900 s to help (watch.act_hold_off_s)"
    )
    home.await_state("lost", State.READY)


def test_what_did_not_help_so_often_today_is_left_alone_also_by_the_next_daemon(home: Home) -> None:
    home.configure(WATCH.format(more="act_hold_off_s = 0.0", acts='service-restarted = "restart"'), limits=LIMITS)
    home.add_fake("brief")
    home.run("up", "brief")
    home.kill_daemon()
    now = time.time()
    former = [
        Acted(now - age, "service-restarted", "brief", "restart", False, "so it was", "it is restarted") for age in range(3)
    ]
    write_batch(home.paths.watch_database, Batch({}, acts=former))
    home.run("up", "brief")
    kill_twice(home, "brief")
    last = acts(home, 4)[-1]
    assert last.outcome == "nothing: that was done 3 times within a day, and it did not help"
    assert home.await_state("brief", State.READY).restarts == 2


def test_nothing_is_done_that_cannot_be_recorded(home: Home) -> None:
    home.configure(WATCH.format(more="act_hold_off_s = 0.0", acts='service-restarted = "stop"'), limits=LIMITS)
    home.add_fake("brief")
    home.run("up", "brief")
    home.paths.audit.mkdir()  # where a line should be added
    kill_twice(home, "brief")
    [done] = acts(home, 1)
    assert done.outcome.startswith("nothing: ") and "cannot be written" in done.outcome
    assert home.await_state("brief", State.READY).restarts == 2
