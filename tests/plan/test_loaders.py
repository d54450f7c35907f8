"""Which loader a plan chooses on a GB10: the fast one where the engine's version has it and there is room, and why."""

from __future__ import annotations

from typing import Any

import pytest
from known import GB, GB10, H200, MISTRAL, PC, QWEN, make_checkpoint, report_of, settings_of

from stoker.facts.engine.catalogs import find_catalog
from stoker.records import NearCatalog, Report, Setting
from support import make_model

EAGER, NO_MAPS = "--safetensors-load-strategy", "--weight-loader-disable-mmap"
VERSIONS = {
    "vllm": ("0.20.2", "0.24.0", "0.26.0", "0.28.0", "0.30.0", "0.33.0"),
    "sglang": ("0.5.9", "0.5.12", "0.5.14", "0.5.16", "0.5.18", "0.5.23"),
}
SERVER = "/usr/local/bin/llama-server"


def plan_gguf(**changes: Any) -> Report:
    known: dict[str, Any] = {"machine": GB10, "server": SERVER} | changes
    return report_of("llamacpp", make_model(), **known)


def setting_of(report: Report, name: str) -> Setting:
    return next(one for one in report.plan.settings if one.name == name)


@pytest.mark.parametrize(("engine", "version"), [(engine, one) for engine, many in VERSIONS.items() for one in many])
def test_a_model_of_a_quarter_of_the_memory_is_read_and_not_mapped(engine: str, version: str) -> None:
    report = report_of(engine, QWEN, version=version, near=find_catalog(engine, version))
    flag, value, rule = {
        "vllm": (EAGER, "eager", "vllm-eager-load-on-gb10"),
        "sglang": (NO_MAPS, True, "sglang-load-without-maps-on-gb10"),
    }[engine]
    chosen = setting_of(report, flag)
    assert (chosen.value, chosen.rule) == (value, rule)
    assert "beats mapping" in chosen.because


@pytest.mark.parametrize(("engine", "flag"), [("vllm", EAGER), ("sglang", NO_MAPS)])
def test_a_version_without_the_flag_is_planned_without_it(engine: str, flag: str) -> None:
    near = find_catalog(engine, VERSIONS[engine][0])
    assert near.catalog is not None
    kept = tuple(one for one in near.catalog.flags if one.name != flag)
    without = NearCatalog(type(near.catalog)(**{**_fields(near.catalog), "flags": kept}))
    assert flag not in settings_of(report_of(engine, QWEN, version=VERSIONS[engine][0], near=without))


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@pytest.mark.parametrize(("engine", "flag"), [("vllm", EAGER), ("sglang", NO_MAPS)])
@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (MISTRAL, {}),  # more than half of the memory: files beside the weights would not fit
        (QWEN, {"machine": H200}),
        (QWEN, {"machine": PC}),
        (QWEN, {"flags": {"load-format": "fastsafetensors"}}),
    ],
)
def test_elsewhere_the_engines_own_way_is_left_alone(engine: str, flag: str, model: Any, changes: dict[str, Any]) -> None:
    assert flag not in settings_of(report_of(engine, model, **changes))


def test_a_large_model_in_vllm_is_told_of_the_loader_that_needs_a_package() -> None:
    note = "vllm-fastsafetensors-if-installed"
    assert [one.level for one in report_of("vllm").findings if one.rule == note] == ["note"]
    assert "--load-format" not in settings_of(report_of("vllm"))
    chosen = report_of("vllm", flags={"load-format": "fastsafetensors"})
    small = report_of("vllm", make_checkpoint(file_bytes=20 * GB))
    assert note not in {one.rule for report in (chosen, small) for one in report.findings}


def test_llama_cpp_reads_the_file_where_the_build_has_the_switch() -> None:
    report = plan_gguf(version="b11549", near=find_catalog("llamacpp", "b11549"))
    chosen = setting_of(report, "--load-mode")
    assert (chosen.value, chosen.rule) == ("none", "llamacpp-load-mode-none")
    assert "llamacpp-mmap-slow" not in {one.rule for one in report.findings}


def test_an_older_llama_cpp_gets_the_advice_and_no_switch_that_it_may_lack() -> None:
    report = plan_gguf(version="b9000", near=find_catalog("llamacpp", "b9000"))
    [finding] = [one for one in report.findings if one.rule == "llamacpp-mmap-slow"]
    assert "--no-mmap in builds before" in finding.fix
    assert not {"--load-mode", "--no-mmap"} & set(settings_of(report))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": None},  # which switch it has is unknown
        {"version": "b11549", "machine": PC},
        {"version": "b11549", "server": None},  # the embedded engine takes no such words
        {"version": "b11549", "flags": {"direct-io": True}},
        {"version": "b11549", "environment": {"LLAMA_ARG_LOAD_MODE": "mmap"}},
    ],
)
def test_llama_cpp_is_left_alone_where_the_switch_is_unknown_unneeded_or_the_users(changes: dict[str, Any]) -> None:
    assert not {"--load-mode", "--no-mmap"} & set(settings_of(plan_gguf(**changes)))


def test_a_plan_with_another_loader_is_another_plan() -> None:
    mapped = plan_gguf(version="b11549", machine=PC).plan
    read = plan_gguf(version="b11549").plan
    assert mapped.plan_id != read.plan_id
    assert len(read.plan_id) == len(mapped.plan_id)
