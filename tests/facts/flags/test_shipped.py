"""The shipped catalogs: well-formed, and true where somebody looked by hand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.errors import StokerError, WrongUse
from stoker.facts.engine.catalogs import (
    FOLDER,
    find_catalog,
    known_engines,
    known_versions,
    load_all,
    load_catalog,
    parse_catalog,
    render_catalog,
    version_key,
)
from stoker.facts.engine.flag_changes import compare_catalogs
from stoker.facts.engine.flags import find_flag, words_of
from stoker.records import Catalog, Flag
from support import fails

TOOL = Path(__file__).parents[3] / "tools" / "catalog.py"
SHIPPED = [(engine, version) for engine in known_engines() for version in known_versions(engine)]
ORDER = [(engine, version) for engine in ("sglang", "vllm") for version in known_versions(engine)[1:]]


def flag_of(engine: str, version: str, word: str) -> Flag:
    """Returns a flag that must be there."""
    found = find_flag(load_catalog(engine, version), word)
    assert found is not None, f"{engine} {version} has no {word}"
    return found.flag


@pytest.mark.parametrize(("engine", "version"), SHIPPED)
def test_every_word_means_one_flag_and_looks_like_one(engine: str, version: str) -> None:
    catalog = load_catalog(engine, version)
    words = [word for flag in catalog.flags for word in words_of(flag)]
    assert len(words) == len(set(words))
    assert [word for word in words if not re.fullmatch(r"--?[a-zA-Z][\w.-]*", word)] == []
    assert (catalog.engine, catalog.version) == (engine, version)
    assert len(catalog.flags) > 200


@pytest.mark.parametrize(("engine", "version"), SHIPPED)
def test_a_catalog_is_what_the_tool_would_write(engine: str, version: str) -> None:
    text = (FOLDER / engine / f"{version}.json").read_text()
    assert render_catalog(parse_catalog(text.encode())) == text
    assert text.count("\n") == len(load_catalog(engine, version).flags) + 2


@pytest.mark.parametrize(("engine", "version"), SHIPPED)
def test_a_switch_takes_no_value_and_a_fixed_default_is_a_choice(engine: str, version: str) -> None:
    for flag in load_catalog(engine, version).flags:
        assert flag.type == "switch" or not flag.negated, flag
        assert flag.type != "switch" or not (flag.choices or flag.many or flag.named), flag
        if flag.choices and flag.default is not None and not (flag.many or flag.deprecated):
            assert str(flag.default) in flag.choices or flag.default == "auto", flag


@pytest.mark.parametrize(("engine", "version"), SHIPPED)
def test_nothing_of_the_machine_that_made_it_is_in_a_catalog(engine: str, version: str) -> None:
    text = (FOLDER / engine / f"{version}.json").read_text()
    assert not re.search(r"/home/|/root|/tmp|/nonexistent|://|stand_in|<class|object at 0x", text)


def test_the_versions_that_the_rules_speak_of_are_there() -> None:
    minors = {version.rpartition(".")[0] for version in known_versions("vllm")}
    assert minors >= {"0.20", "0.24", "0.26", "0.28", "0.30", "0.33"}
    assert {"0.5.9", "0.5.12", "0.5.14", "0.5.16", "0.5.18", "0.5.23"} <= set(known_versions("sglang"))
    assert list(known_versions("sglang"))[:2] == ["0.5.9", "0.5.12"], "oldest first, by number"


def test_facts_that_were_read_in_the_sources() -> None:
    assert "triton" in flag_of("sglang", "0.5.12", "--attention-backend").choices
    assert "flashmla_sparse_q8" not in flag_of("sglang", "0.5.14", "--dsa-decode-backend").choices
    assert "flashmla_sparse_q8" in flag_of("sglang", "0.5.16", "--dsa-decode-backend").choices
    assert flag_of("sglang", "0.5.9", "--fp4-gemm-backend").default == "flashinfer_cutlass"
    assert flag_of("sglang", "0.5.12", "--fp4-gemm-backend").default == "auto"
    assert flag_of("sglang", "0.5.16", "--tp").name == "--tensor-parallel-size"
    assert flag_of("sglang", "0.5.16", "--cuda-graph-bs").deprecated == "use --cuda-graph-bs-decode"
    assert flag_of("sglang", "0.5.16", "--context-length").type == "count"
    assert flag_of("sglang", "0.5.16", "--preferred-sampling-params").type == "json"


def test_facts_of_vllm_that_were_read_in_the_sources() -> None:
    memory = [flag_of("vllm", version, "--gpu-memory-utilization") for version in known_versions("vllm")]
    assert {(flag.name, flag.type, flag.default) for flag in memory} == {("--gpu-memory-utilization", "float", 0.92)}
    assert flag_of("vllm", "0.26.0", "-tp").name == "--tensor-parallel-size"
    assert flag_of("vllm", "0.26.0", "--no-enable-prefix-caching").negated == ("--no-enable-prefix-caching",)
    assert "--disable-prefix-caching" in flag_of("vllm", "0.33.0", "--enable-prefix-caching").negated
    assert flag_of("vllm", "0.33.0", "--speculative-config").type == "json"
    assert flag_of("vllm", "0.33.0", "--allowed-origins").default == "[]"
    assert flag_of("vllm", "0.30.0", "--allowed-origins").default == '["*"]'
    assert flag_of("vllm", "0.28.0", "--max-model-len").type == "count"
    assert "nvfp4" in flag_of("vllm", "0.33.0", "--kv-cache-dtype").named, "told of, while others are taken too"
    assert not flag_of("vllm", "0.33.0", "--kv-cache-dtype").choices
    assert "nvfp4" in flag_of("vllm", "0.30.0", "--kv-cache-dtype").choices
    assert "mistral" in flag_of("vllm", "0.20.2", "--tool-call-parser").named


def test_facts_of_llama_cpp_that_its_parser_was_asked_for() -> None:
    [version] = known_versions("llamacpp")
    assert flag_of("llamacpp", version, "-ngl").name == "--n-gpu-layers"
    assert flag_of("llamacpp", version, "-nkvo").negated == ("--no-kv-offload", "-nkvo")
    assert flag_of("llamacpp", version, "--ctx_size").type == "int"
    assert flag_of("llamacpp", version, "-fa").choices == ("on", "off", "auto")
    assert "draft-mtp" in flag_of("llamacpp", version, "--spec-type").choices
    assert find_flag(load_catalog("llamacpp", version), "--ctx-size=4096") is None, "it takes no equals sign"
    assert load_catalog("llamacpp", version).gone["--draft-max"] == "--spec-draft-n-max"


def test_what_changed_from_sglang_0_5_12_to_0_5_23() -> None:
    versions = [catalog for catalog in load_all("sglang") if catalog.version != "0.5.9"]
    changes = compare_catalogs(versions[0], versions[-1], versions[1:-1])
    renamed = {one.before: one.after for one in changes.renamed}
    assert renamed["--nsa-prefill-backend"] == "--dsa-prefill-backend"
    assert renamed["--cuda-graph-max-bs"] == "--cuda-graph-max-bs-decode"
    assert renamed["--disable-piecewise-cuda-graph"] == "--cuda-graph-backend-prefill=disabled"
    assert "--mamba-radix-cache-strategy" in renamed.values()
    assert {"--attention-data-parallel-size", "--linear-attn-verify-backend"} <= {flag.name for flag in changes.added}
    assert "--torchao-config" in {flag.name for flag in changes.removed}
    defaults = {one.name: (one.before, one.after) for one in changes.defaults}
    assert defaults["--encoder-transfer-backend"] == ("zmq_to_scheduler", "auto")


@pytest.mark.parametrize(("engine", "version"), ORDER)
def test_a_flag_keeps_its_name_from_version_to_version(engine: str, version: str) -> None:
    before = known_versions(engine)[known_versions(engine).index(version) - 1]
    names = {flag.name for flag in load_catalog(engine, before).flags}
    moved = [flag for flag in load_catalog(engine, version).flags if flag.name not in names and names & set(flag.aliases)]
    assert moved == []


def test_the_newest_version_before_the_one_asked_for_stands_in_for_it() -> None:
    near = find_catalog("sglang", "0.5.17")
    assert near.catalog is load_catalog("sglang", "0.5.16")
    assert "0.5.17 is judged by the flags of 0.5.16" in near.why
    assert find_catalog("sglang", "v0.5.16.post1").catalog is near.catalog
    assert find_catalog("vllm", "0.20.0").catalog is None, "0.20.2 is newer"
    assert find_catalog("vllm", "0.33.1rc2").catalog is load_catalog("vllm", "0.33.0")


@pytest.mark.parametrize("version", ["0.5.16", "v0.5.16", "0.5.16+cu130"])
def test_an_exact_version_needs_no_words(version: str) -> None:
    found = find_catalog("sglang", version)
    assert found.catalog is load_catalog("sglang", "0.5.16")
    assert found.why == ""


@pytest.mark.parametrize("version", ["b11549", "11549", "2026.10.11549"])
def test_a_build_of_llama_cpp_is_known_by_each_of_its_names(version: str) -> None:
    assert find_catalog("llamacpp", version).catalog is load_catalog("llamacpp", "b11549")
    assert find_catalog("llamacpp", version).why == ""


@pytest.mark.parametrize(
    ("engine", "version", "says"),
    [
        ("vllm", "0.25.1", "vllm 0.25.1"),
        ("vllm", "1.0.0", "vllm 1.0.0"),
        ("sglang", "0.5.8", "sglang 0.5.8"),
        ("sglang", "nightly-dev", "unknown (nightly-dev)"),
        ("sglang", None, "which version of sglang it is, is unknown"),
        ("llamacpp", "b11000", "llamacpp b11000"),
        ("tgi", "1.0", "no flags of tgi"),
    ],
)
def test_where_no_catalog_fits_there_is_a_reason(engine: str, version: str | None, says: str) -> None:
    near = find_catalog(engine, version)
    assert near.catalog is None
    assert says in near.why


def test_versions_are_ordered_as_people_do() -> None:
    texts = ["0.5.9", "0.5.12rc1", "0.5.12", "0.5.12.post1", "0.5.12.post2", "0.6", "1.0.0"]
    keys = [version_key(text) for text in texts]
    assert keys == sorted(keys, key=lambda key: key or ((), 0))
    assert len(set(keys)) == len(keys)
    assert version_key("0.26") == version_key("0.26.0")
    assert version_key("latest") is None


def test_a_version_that_is_not_known_is_wrong_use_with_those_that_are() -> None:
    with fails(WrongUse, "sglang 9.9.9", "0.5.23"):
        load_catalog("sglang", "9.9.9")
    with fails(WrongUse, "tgi 1.0", "llamacpp, sglang, vllm"):
        load_catalog("tgi", "1.0")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"engine": 3}', b"\xff\xfe", b'{"flags": []}'])
def test_a_broken_catalog_is_an_error_that_says_so(text: bytes) -> None:
    with fails(StokerError, "cannot be read"):
        parse_catalog(text)


def test_a_catalog_is_written_without_what_goes_without_saying() -> None:
    catalog = Catalog(
        "e", "1", "s", (Flag("--b", default=0), Flag("--a", type="switch", default=False)), ("equals",), {"--c": ""}
    )
    lines = render_catalog(catalog).splitlines()
    assert lines[0] == '{"engine":"e","version":"1","source":"s","spellings":["equals"],"gone":{"--c":""},"flags":['
    assert lines[1:] == ['{"name":"--a","type":"switch","default":false},', '{"name":"--b","default":0}', "]}"]
    assert parse_catalog(render_catalog(catalog).encode()).flags == catalog.flags[::-1]


@pytest.mark.skipif(shutil.which("nm") is None, reason="the tool looks up symbols with nm, of binutils")
def test_the_shipped_catalog_of_llama_cpp_is_that_of_the_wheel() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "llamacpp", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
