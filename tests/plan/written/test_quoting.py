"""Commands that are printed to be copied, read by a real bash: the words come out as they were, and nothing is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.plan.written.mend import mended
from stoker.plan.written.quoting import open_in_script, open_variables, quoted, say_command, say_comments
from stoker.plan.written.read import read_command, read_written

CANARY = "PWNED"
HOSTILE = (
    f"$(touch {CANARY})", f"`touch {CANARY}`", f";touch {CANARY};", f"\ntouch {CANARY}\n", f"'$(touch {CANARY})'",
    f'"$(touch {CANARY})"', f"${{X:-$(touch {CANARY})}}", f"&touch {CANARY}", f"|touch {CANARY}", "$HOME", "${HOME}", "~",
    "~/x", "*", "{a,b}", "!x", "#c", "\\", "\\'", "'", "''", "", " ", "a=b", "=ls", "<(id)", "\t", "\x1b[31m", "\x07\x30",
    "\x9b\u2028é",
    "$'x'", f"$(touch {CANARY}", "A=$HOME", "-x", "--a=$HOME", "%1",
)  # fmt: skip
BASH = shutil.which("bash") or "bash"
SHOW = 'show() { printf \'%s\\0\' "$@"; }; vllm() { show "$@"; }; docker() { show "$@"; }\n'
slow = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def shown(text: str, folder: Path) -> list[str]:
    """Returns the words that bash gives to a program for a command; fails where anything else was run."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/home/of test", "V": "v w", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([BASH, "-c", SHOW + text], cwd=folder, env=environment, capture_output=True, check=True)
    assert not (folder / CANARY).exists(), text
    assert done.stderr == b"", text
    return done.stdout.decode().split("\0")[:-1]


words = st.lists(
    st.sampled_from(HOSTILE)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)
    | st.tuples(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE)).map("".join),
    min_size=1,
    max_size=8,
)


@slow
@given(words)
def test_bash_reads_every_word_back_and_runs_nothing(tmp_path: Path, given_words: list[str]) -> None:
    assert shown(say_command(["show", *given_words]), tmp_path) == given_words


@slow
@given(words)
def test_words_that_were_given_as_words_stay_plain_text_when_they_are_mended(tmp_path: Path, given_words: list[str]) -> None:
    [recipe] = read_command(["vllm", "serve", "m", *given_words])
    text = say_command(mended(recipe, ()), open_variables(recipe.unknown, recipe.kind))
    assert shown(text, tmp_path) == ["serve", "m", *given_words]


OPEN = {
    "$HOME": "/home/of test", '"$HOME"/x': "/home/of test/x", '"${HOME}"': "/home/of test", "~/z": "/home/of test/z",
    '"$(echo hi)"': "hi", '"$V"': "v w", "'a '\"$V\"' b'": "a v w b", '--x="$V"': "--x=v w",
}  # fmt: skip
CLOSED = {
    "'$HOME'": "$HOME", r"\$HOME": "$HOME", r'"\$V"': "$V", "'~/z'": "~/z", "'$(echo hi)'": "$(echo hi)",
    f"'$(touch {CANARY})'": f"$(touch {CANARY})", f"'`touch {CANARY}`'": f"`touch {CANARY}`", "'$HOMES'": "$HOMES",
    f"'\";touch {CANARY};\"'": f'";touch {CANARY};"', "'${HOME}x'": "${HOME}x", "a'b'": "ab",
}  # fmt: skip


def script_again(script: str, folder: Path) -> list[str]:
    """Returns the words that the mended command of a script's launch hands over."""
    [recipe] = read_written(script, "run.sh")
    return shown(say_command(mended(recipe, ()), open_in_script(script)), folder)


@pytest.mark.parametrize(("written", "meant"), (OPEN | CLOSED).items())
def test_a_word_of_a_script_does_what_it_did_there(tmp_path: Path, written: str, meant: str) -> None:
    script = f"vllm serve m {written}"
    said = ["/home/of", "test"] if written == "$HOME" else [meant]
    assert shown(script, tmp_path) == ["serve", "m", *said]
    assert script_again(script, tmp_path) == ["serve", "m", meant]


@slow
@given(st.lists(st.sampled_from([*OPEN, *CLOSED]), max_size=6))
def test_plain_text_of_a_script_is_never_opened_and_at_most_what_was_open_is(tmp_path: Path, written: list[str]) -> None:
    again = script_again(f"vllm serve m {' '.join(written)}", tmp_path)[2:]
    assert len(again) == len(written)
    for one, got in zip(written, again, strict=True):
        if one in CLOSED:
            assert got == CLOSED[one]


@pytest.mark.parametrize(
    "script",
    [
        f"A='$(touch {CANARY})'; vllm serve m --x $A",
        f"docker run img bash -c 'vllm serve $(touch {CANARY})'",
        f"docker run img bash -c 'pip install y && vllm serve `touch {CANARY}` $(touch {CANARY})'",
        f"vllm serve m ${{X:-'$(touch {CANARY})'}}",
        f'vllm serve m "\\$(touch {CANARY})" <<\'END\'\n"$(touch {CANARY})"\nEND',
        f"vllm serve m \"$(echo '$(touch {CANARY})')\"",
    ],
)
def test_no_way_round_opens_what_was_plain(tmp_path: Path, script: str) -> None:
    assert any(CANARY in word for word in script_again(script, tmp_path))


def test_what_a_variable_was_set_to_stays_open_where_it_was() -> None:
    assert open_in_script('A=$(pwd)/m; vllm serve "$A" ~/x $B') == {"$(pwd)", "$A", "$B", "~/"}
    assert open_in_script("vllm serve $A '$A' ~/x '~/y'") == frozenset()
    assert open_in_script("A=(~/x $C); B=~/y; vllm serve ${D} $(a 'b') ${E:-$F} `g`") == {"$C", "~/", "${D}", "$(g)"}
    assert open_in_script(" ".join(f"$A{number}" for number in range(500))) == frozenset()


@pytest.mark.parametrize(
    ("kind", "sentence", "found"),
    [
        ("compose", "`${TAG}` is set where compose is called", {"${TAG}", "~/"}),
        ("compose", "`$X` is not set in what was read", {"~/"}),
        ("systemd", "`$X` is not set in the unit", {"$X"}),
        ("recipe", "`$X` is not set in what was read", {"$X"}),
        ("recipe", "`${X:-$(id)}` is not set in what was read", set()),
        ("recipe", "`$(id)` is not set in what was read", set()),
        ("recipe", "`$X[$(id)]` is not set in what was read", set()),
        ("command", "`$X` is not set in what was read", set()),
    ],
)
def test_of_other_files_only_plain_variables_stay_open(kind: str, sentence: str, found: set[str]) -> None:
    assert open_variables([sentence], kind) == found


def test_the_longer_name_is_another_one() -> None:
    assert quoted("$HOMES/$HOME", frozenset({"$HOME"})) == "'$HOMES/'\"$HOME\""


@given(st.lists(st.text(max_size=30) | st.sampled_from(HOSTILE), max_size=4))
def test_comments_hold_nothing_that_a_shell_could_carry_out(sentences: list[str]) -> None:
    for line in say_comments(sentences):
        assert line.startswith("# ")
        assert line.isprintable()
        assert not set(line) & set("$`'\"\\;&|<>(){}!")
