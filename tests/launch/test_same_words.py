"""One container, four forms: read back by the rules of each, docker, podman, compose and a quadlet say the same."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from launch_samples import HOSTILE_WORDS, make_container, make_small_container
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.quadlet import render_quadlet
from stoker.plan.written.docker_options import read_options
from stoker.records import ContainerLaunch, Mount
from systemd_syntax import exec_argv, split_words, values_of, without_specifiers

VOLUME = Mount("hf_cache", "/root/.cache/huggingface", False)
Said = dict[str, Any]


def of_command(argv: tuple[str, ...]) -> Said:
    """Returns what a command line says."""
    read = read_options(argv[2:])
    mounts = [dict(part.partition("=")[::2] for part in text.split(",")) for text in read.options["mount"]]
    return {
        "image": read.rest[0].removeprefix("docker.io/"), "words": list(read.rest[1:]),
        "entrypoint": read.options["entrypoint"][0], "environment": pairs(read.options.get("env", ())),
        "labels": pairs(read.options.get("label", ())), "ports": list(read.options["publish"]),
        "shm": read.options["shm-size"][0], "ulimits": pairs(read.options["ulimit"]),
        "mounts": [(one["source"], one["target"], "readonly" in one) for one in mounts],
    }  # fmt: skip


def of_compose(text: str) -> Said:
    """Returns what the one service of a compose file says."""
    tree = yaml.safe_load(text)
    [service] = tree["services"].values()
    mounts = [(one["source"], one["target"], one["read_only"]) for one in service["volumes"]]
    assert list(tree.get("volumes", ())) == [host for host, _, _ in mounts if not host.startswith("/")]
    assert [one["type"] for one in service["volumes"]] == [
        "bind" if host.startswith("/") else "volume" for host, *_ in mounts
    ]
    return {
        "image": service["image"], "words": [plain(word) for word in service.get("command", [])],
        "entrypoint": plain(service["entrypoint"][0]),
        "environment": {name: plain(value) for name, value in service.get("environment", {}).items()},
        "labels": {name: plain(value) for name, value in service["labels"].items()}, "ports": service["ports"],
        "shm": str(service["shm_size"]), "ulimits": {name: str(value) for name, value in service["ulimits"].items()},
        "mounts": mounts,
    }  # fmt: skip


def plain(text: str) -> str:
    """Returns text as compose reads it: `$$` is one sign, and no other may be there."""
    assert "$" not in text.replace("$$", "")
    return text.replace("$$", "$")


def of_quadlet(text: str) -> Said:
    """Returns what a quadlet says."""
    mounts = [value.split(":") for value in values_of(text, "Volume")]
    [entrypoint] = [word for word in split_words(values_of(text, "PodmanArgs")[0]) if word.startswith("--entrypoint=")]
    [image], [shm] = values_of(text, "Image"), values_of(text, "ShmSize")
    return {
        "image": image.removeprefix("docker.io/"), "words": exec_argv(text, "Exec") if values_of(text, "Exec") else [],
        "entrypoint": entrypoint.partition("=")[2], "environment": pairs(quadlet_words(text, "Environment")),
        "labels": pairs(quadlet_words(text, "Label")), "ports": values_of(text, "PublishPort"), "shm": shm,
        "ulimits": pairs(values_of(text, "Ulimit")), "mounts": [(one[0], one[1], one[2:] == ["ro"]) for one in mounts],
    }  # fmt: skip


def quadlet_words(text: str, key: str) -> list[str]:
    return [without_specifiers(word).replace("$$", "$") for line in values_of(text, key) for word in split_words(line)]


def pairs(texts: Any) -> dict[str, str]:
    return dict(text.partition("=")[::2] for text in texts)


CONTROL_FREE = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn")), min_size=1, max_size=12)
WORDS = st.lists(st.sampled_from(HOSTILE_WORDS) | CONTROL_FREE, max_size=6).map(
    lambda words: tuple(word for word in words if word != ";")
)


@given(WORDS, CONTROL_FREE)
def test_every_form_says_the_same(words: tuple[str, ...], value: str) -> None:
    mounts = (*make_container().mounts, VOLUME)
    launch = make_container(words=words, environment=(("EXTRA", value),), labels=(("x", value),), mounts=mounts)
    said = of_command(render_docker_run(launch))
    assert said["words"] == list(words)
    assert (said["environment"], said["labels"]) == ({"EXTRA": value}, {"x": value})
    assert of_command(render_podman_run(launch)) == said
    assert of_compose(render_compose([launch])) == said
    assert of_quadlet(render_quadlet(launch)) == said


def forms(launch: ContainerLaunch) -> list[str]:
    return [render_compose([launch]), render_quadlet(launch)]


def test_what_nobody_asked_for_has_its_reason_above_it_and_nothing_else_has_one() -> None:
    for text in forms(make_container()):
        lines = text.splitlines()
        [place] = [number for number, line in enumerate(lines) if line.strip().startswith(("shm_size", "ShmSize"))]
        above = lines[place - 1]
        assert above.strip().startswith("# ")
        assert "64 MiB" in above
        assert text.count("sees no GPU") == 1
    for text in forms(make_small_container(ipc=None, words=("shm_size:",))):
        assert "64 MiB" not in text
        assert text.count("#") == 1
    assert not any("#" in word for word in render_docker_run(make_container()))
