"""Compose services key by key, and the variables that compose fills in."""

from __future__ import annotations

import pytest

from stoker.plan.written.compose import looks_like, read
from stoker.plan.written.interpolation import Interpolation
from stoker.records import Recipe


def service(text: str) -> Recipe:
    """Reads one service, given as the lines below its name."""
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    [recipe] = read(f"services:\n  engine:\n    image: vllm/vllm-openai\n    command: a/b\n{indented}\n", "compose.yml")
    return recipe


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("network_mode: host", {"network": ("host",)}),
        ("networks: [a, b]", {"network": ("a", "b")}),
        ("networks: {a: {aliases: [x]}}", {"network": ("a",)}),
        ("ports: ['8000:8000', 9000, 127.0.0.1:1:1]", {"publish": ("8000:8000", "9000", "127.0.0.1:1:1")}),
        ("ports:\n- target: 8000\n  published: '80'", {"publish": ("80:8000",)}),
        ("ports:\n- 22:22", {"publish": ("22:22",)}),
        ("volumes:\n- a:/b:ro\n- {type: volume, source: c, target: /d}", {"volume": ("a:/b:ro", "c:/d")}),
        ("ulimits: {memlock: -1, nofile: {soft: 1, hard: 2}}", {"ulimit": ("memlock=-1", "nofile=1:2")}),
        ("shm_size: 16g\nipc: host\npid: host", {"ipc": ("host",), "pid": ("host",), "shm-size": ("16g",)}),
        ("restart: no", {"restart": ("no",)}),
        ("restart: on-failure:3", {"restart": ("on-failure:3",)}),
        ("privileged: true\ntty: yes\ninit: false\nread_only: 'on'", {"privileged": (), "tty": (), "read-only": ()}),
        ("deploy: {resources: {limits: {memory: 90g, cpus: 0.50}}}", {"memory": ("90g",), "cpus": ("0.50",)}),
        ("deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}", {"gpus": ("1",)}),
        ("deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}", {"gpus": ("all",)}),
        ("deploy: {resources: {reservations: {devices: [{driver: tpu}]}}}", {}),
        ("gpus: all", {"gpus": ("all",)}),
        ("gpus: [{driver: nvidia, device_ids: ['0']}]", {"gpus": ("device=0",)}),
        ("mem_limit: 1g\nmemswap_limit: 2g", {"memory": ("1g",), "memory-swap": ("2g",)}),
        ("cap_add: [IPC_LOCK]\nsecurity_opt: [seccomp=unconfined]",
         {"cap-add": ("IPC_LOCK",), "security-opt": ("seccomp=unconfined",)}),
        ("labels: {a: b}\nextra_hosts: {h: 1.2.3.4}\nsysctls: [x=1]",
         {"label": ("a=b",), "add-host": ("h:1.2.3.4",), "sysctl": ("x=1",)}),
        ("env_file: .env", {"env-file": (".env",)}),
        ("env_file: [a, {path: b, required: false}]", {"env-file": ("a", "b")}),
        ("healthcheck: {test: [CMD, curl, x], retries: 3}", {"health-cmd": ("curl x",), "health-retries": ("3",)}),
        ("healthcheck: {test: curl x, timeout: 5s}", {"health-cmd": ("curl x",), "health-timeout": ("5s",)}),
        ("healthcheck: {disable: true}", {"no-healthcheck": ()}),
        ("healthcheck: {test: [NONE]}", {"no-healthcheck": ()}),
        ("logging: {driver: local, options: {max-size: 1m}}", {"log-driver": ("local",), "log-opt": ("max-size=1m",)}),
        ("ports: 5\nvolumes: x\nulimits: []\ndeploy: y\nhealthcheck: z\nlogging: []", {}),
    ],
)  # fmt: skip
def test_keys_become_the_options_of_docker(text: str, options: dict[str, tuple[str, ...]]) -> None:
    assert service(text).container == options


@pytest.mark.parametrize(
    ("text", "filled", "said"),
    [
        ("${A:-b}c", "bc", 0),
        ("${A-b}", "b", 0),
        ("${A:-}", "", 0),
        ("${A:-${B:-c}}", "c", 0),
        ("${A:+b}", "", 0),
        ("$$A $${B}", "$A ${B}", 0),
        ("$A", "$A", 1),
        ("x${A}y${B:?no}", "x${A}y${B:?no}", 2),
        ("${A:-$B}", "$B", 1),
        ("a $ b $1 ${", "a $ b $1 ${", 0),
        ("{${A:-b}}", "{b}", 0),
    ],
)
def test_variables_are_filled_in_as_compose_does(text: str, filled: str, said: int) -> None:
    notes: list[str] = []
    assert Interpolation(notes).text(text) == filled
    assert len(notes) == said


def test_values_stay_as_they_were_written() -> None:
    recipe = service("environment: {A: on, B: 0x10, C: 1_000, D: 1e3, E: 2026-01-01, F: 0.90, G: null, H: ''}")
    assert recipe.environment == {
        "A": "on", "B": "0x10", "C": "1_000", "D": "1e3", "E": "2026-01-01", "F": "0.90", "G": "$G", "H": "",
    }  # fmt: skip


def test_an_environment_may_be_a_list() -> None:
    recipe = service("environment: [A=b=c, D, '=x']")
    assert recipe.environment == {"A": "b=c", "D": "$D"}
    assert recipe.lost_environment == {}


def test_a_service_takes_over_what_it_extends() -> None:
    text = """services:
  base: {image: vllm/vllm-openai, restart: always, extends: elsewhere}
  engine: {extends: base, command: a/b}
  other: {image: vllm/vllm-openai, command: c/d, extends: {file: x.yml, service: base}}
"""
    recipes = {recipe.name: recipe for recipe in read(text, "compose.yml")}
    assert recipes["engine"].model == "a/b"
    assert recipes["engine"].container == {"restart": ("always",)}
    assert any("extends a service" in said for said in recipes["engine"].unknown)
    assert any("extends a service" in said for said in recipes["other"].unknown)


def test_an_image_that_is_built_is_told() -> None:
    [recipe] = read("services: {a: {build: ., command: vllm serve m}}", "compose.yml")
    assert recipe.engine == "vllm"
    assert recipe.unknown == ("its image is built from files that are not seen here",)


def test_other_trees_are_no_compose_file() -> None:
    trees: list[object] = [None, [], {"services": []}, {"a": {}}, "services"]
    assert not any(looks_like(tree, "x") for tree in trees)
