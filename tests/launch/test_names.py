"""Names, paths and values that could mean more than they say are refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch_samples import make_container, make_overlay, make_small_container, make_unit
from stoker.config import SERVICE_NAME
from stoker.errors import Refused
from stoker.launch.compose import render_compose
from stoker.launch.container import render_docker_run, render_podman_run
from stoker.launch.dockerfile import render_overlay
from stoker.launch.names import check_service, check_user, sudoers_file_name, unit_name
from stoker.launch.quadlet import render_quadlet
from stoker.launch.sudoers import HEADER, render_sudoers
from stoker.launch.unit import render_unit
from stoker.records import Mount, Publish
from support import fails

HOSTILE = [
    "", " ", "a b", "a,b", "a*", "*", "?", "[a]", "a\\", "a\nb", "a\n", "\n", "ALL", "All", "%wheel", "+netgroup",
    "#1000", "!a", "..", "a..b", "a.", ".a", "../a", "a/b", "-a", "--now", "a" * 64, "é", "a\u200b", "\u0430lice", "a\0",
    "a=b",
    "a:b", "a(b)", "$a", "`a`", "a;b", "a#b", "a~", '"a"', "a@b", "a%i",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused_as_user_and_as_service(name: str) -> None:
    with fails(Refused, "as a service"):
        render_sudoers("alice", ("coder", name))
    with fails(Refused, "as a user"):
        render_sudoers(name, ("coder",))
    with fails(Refused, "as a service"):
        render_unit(make_unit(name=name))
    with fails(Refused, "as a user"):
        render_unit(make_unit(user=name))


@pytest.mark.parametrize("name", ["alice", "_alice", "a", "alice-2", "alice.smith", "www-data", "a" * 32])
def test_ordinary_users_are_taken(name: str) -> None:
    assert check_user(name) == name


@pytest.mark.parametrize("name", ["coder", "qwen3.6-27b", "my_model", "0", "a" * 63])
def test_ordinary_services_are_taken(name: str) -> None:
    assert check_service(name) == name


@given(st.from_regex(SERVICE_NAME, fullmatch=True))
def test_every_service_that_the_configuration_knows_has_its_own_file_or_is_refused(name: str) -> None:
    try:
        file = sudoers_file_name(name)
    except Refused:
        assert ".." in name or name.endswith(".")
        return
    assert "." not in file
    assert not file.endswith("~")
    assert file.replace("+", ".") == unit_name(name) == f"stoker-{name}"


@given(st.text())
def test_no_text_at_all_gets_a_second_meaning_into_a_sudoers_line(name: str) -> None:
    try:
        text = render_sudoers("alice", (name,))
    except Refused:
        return
    rules = text.removeprefix(HEADER).splitlines()
    assert rules == [
        f"alice ALL=(root) NOPASSWD: /usr/bin/systemctl {act} stoker-{name}.service" for act in ("start", "stop", "restart")
    ]
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")


@pytest.mark.parametrize(
    "path", ["systemctl", "/usr/bin/../systemctl", "/usr/bin/systemctl *", "/bin/sh", "/a b/systemctl", "", "/.x/systemctl"]
)
def test_only_a_whole_path_to_a_systemctl_may_be_given_away(path: str) -> None:
    with fails(Refused, "cannot be allowed without a password"):
        render_sudoers("alice", ("coder",), systemctl=path)


@pytest.mark.parametrize("action", ["status", "edit", "*", "start stop", "", "daemon-reload"])
def test_other_actions_are_not_given_away(action: Any) -> None:
    with fails(Refused, "cannot be allowed without a password"):
        render_sudoers("alice", ("coder",), actions=("start", action))


def test_fewer_actions_make_fewer_lines() -> None:
    text = render_sudoers("alice", ("coder",), actions=("restart",), systemctl="/bin/systemctl")
    assert text.removeprefix(HEADER) == "alice ALL=(root) NOPASSWD: /bin/systemctl restart stoker-coder.service\n"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "--privileged"}, "cannot be written down"),
        ({"name": "a b"}, "cannot be written down"),
        ({"image": "--privileged"}, "cannot be written down"),
        ({"image": "a b"}, "cannot be written down"),
        ({"image": "$x"}, "cannot be written down"),
        ({"network": "host"}, "cannot publish ports"),
        ({"mounts": (Mount("models/x", "/model"),)}, "the mount 'models/x'"),
        ({"mounts": (Mount("-models", "/model"),)}, "the mount '-models'"),
        ({"mounts": (Mount("models,readonly=false", "/model"),)}, "the mount 'models,readonly=false'"),
        ({"mounts": (Mount("/a:/etc", "/model"),)}, "the mount '/a:/etc'"),
        ({"mounts": (Mount("/a", "/model,readonly=false"),)}, "the mount's place"),
        ({"mounts": (Mount("/a\nb", "/model"),)}, "the mount '/a\\nb'"),
        ({"env_file": "/a b"}, "must not hold a space"),
        ({"env_file": "env"}, "the environment file 'env'"),
        ({"gpus": "all --privileged"}, "cannot have the GPUs"),
        ({"user": "0 --privileged"}, "and the user"),
        ({"publish": (Publish(1, 1, "0.0.0.0:80:80 "),)}, "no address to publish a port on"),
        ({"environment": (("A B", "1"),)}, "the name of an environment variable"),
        ({"environment": (("A=B", "1"),)}, "the name of an environment variable"),
        ({"words": ("a\0b",)}, "NUL"),
        ({"environment": (("A", "\0"),)}, "NUL"),
        ({"words": ("\ud800",)}, "not UTF-8"),
    ],
)
def test_a_container_that_could_be_misread_is_refused_everywhere(changes: dict[str, Any], says: str) -> None:
    launch = make_container(**changes)
    for render in (render_docker_run, render_podman_run, render_quadlet, lambda launch: render_compose([launch])):
        with fails(Refused, says):
            render(launch)


@pytest.mark.parametrize("name", ["HF_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "PASSWORD", "HUGGING_FACE_HUB_TOKEN"])
def test_a_secret_does_not_reach_a_command_line_or_a_file(name: str) -> None:
    with fails(Refused, f"would show a secret: {name}", "mode 0600"):
        render_docker_run(make_container(environment=((name, "hush"),)))
    with fails(Refused, f"would show a secret: {name}"):
        render_unit(make_unit(environment=((name, "hush"),)))
    with fails(Refused, f"would show a secret: {name}"):
        render_unit(make_unit(argv=("/usr/bin/env", f"{name}=hush", "engine")))


@pytest.mark.parametrize(
    "word", ["--api-key", "--api-key=hush", "--admin-api-key", "--hf-token=hush", "--ssl-keyfile-password"]
)
def test_a_secrets_option_is_refused_and_its_value_not_repeated(word: str) -> None:
    with pytest.raises(Refused) as caught:
        render_docker_run(make_container(words=("serve", word, "hush")))
    assert word.partition("=")[0] in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "MAX_TOKENS", "API_KEY_FILE", "KEYBOARD", "SGLANG_CLIP_MAX_NEW_TOKENS"]
)
def test_what_only_sounds_like_a_secret_passes(name: str) -> None:
    words = ("--api-key-file", "/keys", "--max-total-tokens", "9", "--tokenizer-path", "/model")
    assert f"{name}=1" in render_docker_run(make_container(environment=((name, "1"),), words=words))


def test_the_secret_file_is_named_and_its_content_is_nobodys_business() -> None:
    argv = render_docker_run(make_container())
    assert argv[argv.index("--env-file") + 1] == "/home/alice/.config/stoker/coder.env"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"argv": ()}, "a program with its whole path"),
        ({"argv": ("vllm", "serve")}, "a program with its whole path"),
        ({"argv": ("-/bin/sh",)}, "a program with its whole path"),
        ({"argv": ("/opt/$x/vllm",)}, "a program with its whole path"),
        ({"argv": ("/bin/a\nUser=root",)}, "control character"),
        ({"description": "a\nUser=root"}, "control character"),
        ({"description": "a\\"}, "ends with a backslash"),
        ({"working_directory": "/srv/*\n"}, "the working directory"),
        ({"working_directory": "~"}, "the working directory"),
        ({"env_file": "-/etc/x"}, "the environment file"),
        ({"env_file": "/etc/*"}, "the environment file"),
        ({"conditions": ("|!/x",)}, "the condition"),
        ({"wants": ("a.service b.service",)}, "the name of a unit"),
        ({"wants": ("a",)}, "the name of a unit"),
        ({"group": "ALL"}, "as a user"),
        ({"environment": (("A", "1\nUser=root"),)}, "control character"),
        ({"kind": "oneshot", "stop_argv": ("stoker", "down")}, "ExecStop needs a program with its whole path"),
    ],
)
def test_a_unit_that_could_be_misread_is_refused(changes: dict[str, Any], says: str) -> None:
    with fails(Refused, says):
        render_unit(make_unit(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"base": "a b"}, {"base": "a\nRUN x"}, {"digest": "sha256:1"}, {"digest": "x"}, {"package": "a; x"},
        {"package": "../x"},
        {"repository": "https://x/$(id)"}, {"repository": "git@x:y"}, {"repository": "--upload-pack=x"}, {"commit": "main"},
        {"commit": "0123456"}, {"because": "x\nRUN y"}, {"checksums": (("../x", "ab" * 32),)}, {"checksums": (("x", "ab"),)},
        {"checksums": (('x" | sh', "ab" * 32),)},
    ],
)  # fmt: skip
def test_an_overlay_takes_nothing_that_a_shell_could_read_otherwise(changes: dict[str, Any]) -> None:
    with fails(Refused):
        render_overlay(make_overlay(**changes))


def test_two_containers_of_one_name_do_not_fit_into_a_compose_file() -> None:
    with fails(Refused, "two containers have one name"):
        render_compose([make_small_container(), make_small_container()])


@pytest.mark.parametrize("word", ["", ";"])
def test_a_word_that_podmans_generator_loses_is_refused_for_a_quadlet(word: str) -> None:
    with fails(Refused, "an empty word or a lone `;`"):
        render_quadlet(make_container(words=("a", word, "b")))
