"""llama.cpp's prompt cache is bounded, counted, and said to be neither where that cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from known import report_of

from stoker.engines import find
from stoker.errors import Refused
from stoker.records import MIB, Report
from support import make_model

LINE, SERVER = "prompt cache", "/usr/bin/llama-server"


def words_of(report: Report) -> tuple[str, ...]:
    return find("llamacpp").render(report.plan, 1).argv


def lines_of(report: Report) -> dict[str, int]:
    assert report.budget is not None
    return {line.name: line.need_bytes for line in report.budget.lines}


def unknown_of(report: Report) -> str:
    assert report.budget is not None
    return "; ".join(report.budget.unknown)


@pytest.mark.parametrize(("per_token", "mib"), [(1280, 80), (131072, 1024)])
def test_it_is_as_large_as_the_cache_and_no_larger_than_the_rule_says(per_token: int, mib: int) -> None:
    report = report_of("llamacpp", make_model(kv_bytes_per_token=per_token), version="2026.10.11549")
    words = words_of(report)
    assert words[words.index("--cache-ram") + 1] == str(mib)
    assert lines_of(report)[LINE] == mib * MIB
    assert sum(lines_of(report).values()) == report.plan.memory_need_bytes


def test_a_person_may_say_how_large_it_is_or_that_there_is_none() -> None:
    more = report_of("llamacpp", make_model(), version="2026.10.11549", prompt_cache_mib=3000)
    none = report_of("llamacpp", make_model(), version="2026.10.11549", prompt_cache_mib=0)
    assert lines_of(more)[LINE] == 3000 * MIB
    assert more.plan.memory_need_bytes - none.plan.memory_need_bytes == 3000 * MIB
    assert words_of(none)[words_of(none).index("--cache-ram") + 1] == "0"
    with pytest.raises(Refused, match="prompt_cache_mib"):
        report_of("llamacpp", make_model(), prompt_cache_mib=-1)


@pytest.mark.parametrize("said", [{"flags": {"cache-ram": 500}}, {"environment": {"LLAMA_ARG_CACHE_RAM": "500"}}])
def test_what_a_servers_own_words_say_is_counted_and_not_said_twice(said: dict[str, Any]) -> None:
    report = report_of("llamacpp", make_model(), version="b11549", server=SERVER, **said)
    assert words_of(report).count("--cache-ram") == ("flags" in said)
    assert lines_of(report)[LINE] == 500 * MIB


@pytest.mark.parametrize("version", [None, "b6500"])
def test_a_server_that_may_not_know_the_flag_is_not_told_and_the_plan_says_what_it_does_not_know(
    version: str | None,
) -> None:
    report = report_of("llamacpp", make_model(), version=version, server=SERVER)
    assert "--cache-ram" not in words_of(report)
    assert "prompt cache" in unknown_of(report)


def test_a_server_that_is_told_to_have_no_limit_is_warned_of_and_not_refused() -> None:
    report = report_of("llamacpp", make_model(), version="b11549", server=SERVER, flags={"cache-ram": -1})
    assert [finding.level for finding in report.findings if finding.rule == "llamacpp-prompt-cache"] == ["warn"]
    assert "prompt cache" in unknown_of(report)
