"""Shell text: what becomes of variables, branches, quotes, functions and heredocs, without a shell."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from stoker.errors import WrongUse
from stoker.plan.written.shell import Command, read_commands
from support import fails


def last(text: str) -> Command:
    """Returns the last command of a text."""
    return read_commands(text)[-1]


WORDS = [
        ("x 'a b' \"c d\" e\\ f g''h \"\"", ["x", "a b", "c d", "e f", "gh", ""]),
        ("x a\\\n  b \\\n c", ["x", "a", "b", "c"]),
        ("x a\\\nb", ["x", "ab"]),
        ("x a # b\n# y", ["x", "a"]),
        ("x a#b", ["x", "a#b"]),
        ("x $'a\\tb' $\"c\"", ["x", "a\tb", "c"]),
        ("x \"a\\\"b\\$c\\d\"", ["x", 'a"b$c\\d']),
        ("x 2>&1 >/dev/null <in a 2> b &> c", ["x", "a"]),
        ("x a2>b 3", ["x", "a2", "3"]),
        ("A=1; x $A \"$A\" '$A' ${A}b", ["x", "1", "1", "$A", "1b"]),
        ("A='1 2'; x $A \"$A\"", ["x", "1", "2", "1 2"]),
        ("A=(1 '2 3'); x \"${A[@]}\" \"${A[*]}\" $A pre\"${A[@]}\"post",
         ["x", "1", "2 3", "1 2 3", "1", "pre1", "2 3post"]),
        ("A=(); x \"${A[@]}\" ${A[@]}", ["x"]),
        ("A=(\n1 # one\n2\n)\nA+=(3); x ${A[@]}", ["x", "1", "2", "3"]),
        ("A=1; A+=2; x $A", ["x", "12"]),
        ("x ${A:-1} \"${B:-2 3}\" ${C-$D} ${E:=${F:-4}}", ["x", "1", "2 3", "$D", "4"]),
        ("A=; x \"${A:-1}\" \"${A-2}\" ${A:+3} \"${A+4}\"", ["x", "1", "", "4"]),
        ("A=a/b.c; x ${A##*/} ${A#*/} ${A%.*} ${A%%/*} ${A/a/z} ${A^^}", ["x", "b.c", "b.c", "a/b", "a", "z/b.c", "A/B.C"]),
        ("A=(1 2); x \"${A[@]:+${A[@]}}\"", ["x", "1", "2"]),
        ("unset A; A=1; unset A; x $A", ["x", "$A"]),
        ("x $(date) `date` \"$(a \"b)\" c)\" <(d)", ["x", "$(date)", "$(date)", '$(a "b)" c)', "(d)"]),
        ("x $A ${A}b $1 \"$@\" $$ $", ["x", "$A", "${A}b", "$1", "$@", "$$", "$"]),
        ("x ${#A} ${!A} ${A:1:2} ${A[0]}", ["x", "${#A}", "${!A}", "${A:1:2}", "${A[0]}"]),
        ("x *.c", ["x", "*.c"]),
        ("export A=1 B=2; declare C=3; declare -x D=4; x $A$B$C$D", ["x", "1234"]),
        ("x 'a\nb'", ["x", "a\nb"]),
        ("cat <<E\nvllm $(\nE\nx a", ["x", "a"]),
        ("cat <<-'E' <<F\n\tb\n\tE\nF\nx a", ["x", "a"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_are_those_that_a_shell_would_make(text: str, words: list[str]) -> None:
    assert list(last(text).words) == words


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")
@pytest.mark.parametrize("text", [text for text, _ in WORDS if not last(text).notes])
def test_bash_makes_the_same_words(text: str, tmp_path: Path) -> None:
    """Runs those texts of the table that hang on nothing outside them."""
    (tmp_path / "in").touch()
    script = f"exec 3>&1; set -f; x() {{ for word; do printf '%s\\0' \"$word\" >&3; done; }}\n{text}"
    printed = subprocess.run(["bash", "-c", script], capture_output=True, env={}, cwd=tmp_path, check=False).stdout
    assert printed.decode().split("\0")[:-1] == list(last(text).words[1:])


def test_lines_of_another_system_are_lines() -> None:
    assert [command.words for command in read_commands("x a \\\r\n b\r\ny c\r\n")] == [("x", "a", "b"), ("y", "c")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("if [ a = a ]; then A=1; fi", "1"),
        ("if [ a = b ]; then A=1; else A=2; fi", "2"),
        ("if [[ \"${X:-1}\" == 2 ]]; then A=1; elif [[ -z \"$Y\" || 1 ]]; then A=3; else A=2; fi", "3"),
        ("if [ \"$X\" ]; then A=1; fi", "1"),
        ("A=0; if [ \"$X\" ]; then A=1; fi", "0"),
        ("A=0; if command -v x; then A=1; fi", "0"),
        ("[[ -n '' ]] && A=1 || A=2", "2"),
        ("[[ -n x ]] && A=1 || A=2", "1"),
        ("[ 3 -gt 2 ] && A=1", "1"),
        ("! [ 3 -gt 2 ] || A=1", "1"),
        ("mkdir x && A=1", "1"),
        ("true && A=1; false && A=2", "1"),
        ("case \"${X:-b}\" in a) A=1;; b|c) A=2;; *) A=3;; esac", "2"),
        ("case q in\n (a) A=1 ;;\n *) A=3 ;;\nesac", "3"),
        ("A=0; case $X in a) A=1;; esac", "0"),
        ("A=0; for i in 1 2; do A=$i; done", "0"),
        ("A=0; while read x; do A=1; done", "0"),
        ("{ A=1; }", "1"),
        ("(A=1)", "1"),
        ("[ a = b ] && { A=2; }; A=${A:-1}", "1"),
        ("f() { A=1; }; A=2; f", "2"),
        ("if [ a = b ] &&\n  [ c = c ]\nthen\n  A=1\nfi\nA=${A:-2}", "2"),
    ],
)  # fmt: skip
def test_a_variable_is_set_where_its_branch_surely_runs(text: str, value: str) -> None:
    assert last(f'{text}\nx "$A"').words == ("x", value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A=0\nif [ $X ]; then A=1; fi\nx $A", "line 2 sets `1` only under a condition"),
        ("A=(0)\n[ $X ] && A+=(--b c)\nx ${A[@]}", "line 2 adds `--b c` only under a condition"),
        ("[ $X ] && A=1\nx $A", "line 1 sets `A` only under a condition"),
        ("[ a = b ] && A=1\nx $A", "line 1 sets `1` only under a condition"),
        ("for A in 1 2; do x $A; done", "line 1: `A` goes through 1 2"),
        ("x $A", "`$A` is not set in what was read"),
        ("x ${A:?give A}", "`${A:?give A}` is not set in what was read"),
        ("x $(a)", "what `$(a)` gives is known only when it runs"),
        ("A=$(a); x $A", "what `$(a)` gives is known only when it runs"),
        ("x \"$@\"", "`$@` is what the script is called with"),
        (". ./env.sh\nx", "line 1 reads `./env.sh`, which is not seen here"),
        ("x a \\ \n b", "line 1: blanks follow the backslash, so the shell ends the command there"),
        ("x a \\\n # b\n", "line 2: a comment after a backslash ends the command there"),
        ("x 'a", "line 1: a quote is never closed"),
        ("x $(a", "line 1: `(` is never closed"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_told(text: str, said: str) -> None:
    assert said in last(text).notes


def test_a_backslash_note_stays_with_its_own_command() -> None:
    first, second = read_commands("x a \\ \n b\n\ny")
    assert first.notes
    assert not second.notes


def test_commands_are_found_wherever_they_stand() -> None:
    text = "a && b || c; d | e &\nif f; then g; else h; fi\nk() { i; }\n(l; m)\nwhile n; do o; done\n"
    text += "case p in q) r;; esac\n! s; time t"
    assert [command.words[0] for command in read_commands(text)] == list("abcdefghilmnorst")


def test_a_function_is_read_with_the_variables_that_come_after_it() -> None:
    [command, call] = read_commands("start() {\n  x $A\n}\nA=1\nstart")
    assert (command.words, command.line) == (("x", "1"), 2)
    assert call.words == ("start",)


def test_a_command_sees_what_was_exported_before_it_and_what_stands_before_it() -> None:
    command = last("export A=1\nB=2\nexport B\nC=3\nD=4 x")
    assert command.environment == {"A": "1", "B": "2", "D": "4"}
    assert command.line == 5


def test_a_script_too_long_to_be_one_is_refused() -> None:
    with fails(WrongUse, "longer than 300,000 characters"):
        read_commands("x" * 300_001)
