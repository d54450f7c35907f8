"""Rules of the user's own: begun from a failure, checked, found again, and winning over those that ship."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from home import Home

LOG = """(APIServer pid=101) INFO 11-20 08:03:39 [utils.py:233] non-default args: {'model': '/models/m'}
(EngineCore pid=7) ERROR 11-20 08:04:11 [core.py:12] WibbleError: 17 frobnicators at /opt/x.so are 1.5 askew
OSError: [Errno 98] Address already in use
"""
OTHER = LOG.replace("17", "23").replace("/opt/x.so", "/usr/y.so").replace("08:04:11", "09:00:00").replace("1.5", "2")
SAYS = ("--cause", "Two of them were there at once.", "--fix", "Start with one of them.")


@pytest.fixture
def log(tmp_path: Path) -> str:
    file = tmp_path / "vllm.log"
    file.write_text(LOG.replace("OSError: [Errno 98] Address already in use\n", ""))
    return str(file)


def test_a_rule_begun_from_a_failure_explains_the_next_one(home: Home, log: str, tmp_path: Path) -> None:
    said = home.run("rules", "add", "frobnicators-askew", log, *SAYS, "--use=--frobnicators=1").stdout
    assert "your own rule, which wins over ours" in said
    [rule] = tomllib.loads((home.folder / "rules" / "frobnicators-askew.toml").read_text())["rule"]
    assert rule["signs"] == [r"WibbleError: \d+ frobnicators at \S+ are [\d.]+ askew"]
    assert (rule["when"], rule["use"]) == ({"engine": "vllm"}, {"--frobnicators": "1"})
    later = tmp_path / "later.log"
    later.write_text(OTHER.replace("2 askew", "2.0 askew"))
    told = json.loads(home.run("diagnose", str(later), "--json").stdout)
    first = told["findings"][0]
    assert (first["rule"], first["confidence"]) == ("frobnicators-askew", "certain")
    assert "your own rule" in home.run("diagnose", str(later)).stdout
    assert "Two of them were there at once." in home.run("rules", "frobnicators-askew").stdout
    assert "frobnicators-askew" in home.run("rules").stdout


def test_ones_own_rule_wins_over_ours_and_the_contradiction_is_shown(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "vllm.log"
    file.write_text(LOG)
    home.run("rules", "add", "own-port", str(file), "--line", "3", *SAYS, "--contradicts", "port-taken")
    told = json.loads(home.run("diagnose", str(file), "--json").stdout)
    found = {one["rule"]: one["confidence"] for one in told["findings"]}
    assert (found["own-port"], found["port-taken"]) == ("certain", "possible")
    assert "contradicts port-taken" in home.run("diagnose", str(file)).stdout


def test_what_is_explained_already_needs_its_line_named(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "vllm.log"
    file.write_text("OSError: [Errno 98] Address already in use\n")
    said = home.run("rules", "add", "own-port", str(file), *SAYS, code=3).stderr
    assert "told by port-taken" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("Not-A-Name",), 2, "cannot be made"),
        (("own", "--fix", "no"), 3, "`fix` is no sentence"),
        (("own", "--contradicts", "nobody"), 3, "contradicts nobody, which does not exist"),
        (("own", "--use", "docker:x=1"), 2, "--use takes"),
        (("own", "--line", "99"), 2, "has no line 99"),
    ],
)
def test_a_rule_that_is_not_as_it_should_be_is_not_kept(
    home: Home, log: str, words: tuple[str, ...], code: int, said: str
) -> None:
    rule_id, *more = words
    assert said in home.run("rules", "add", rule_id, log, *more, code=code).stderr
    assert not list((home.folder / "rules").glob("*")) if (home.folder / "rules").exists() else True


def test_no_rule_is_overwritten(home: Home, log: str) -> None:
    home.run("rules", "add", "own", log, *SAYS)
    assert "there is a rule in" in home.run("rules", "add", "own", log, *SAYS, "--line", "2", code=3).stderr


def test_a_file_that_cannot_be_read_is_named_and_not_passed_over(home: Home, log: str) -> None:
    (home.folder / "rules").mkdir()
    (home.folder / "rules" / "odd.toml").write_text("[[rule]]\nid = 'x'\n")
    said = home.run("diagnose", log, code=1).stderr
    assert "odd.toml cannot be read" in said
    assert "missing required field" in said


def test_a_sign_that_cannot_be_looked_for_is_named(home: Home, log: str) -> None:
    home.run("rules", "add", "own", log, *SAYS)
    file = home.folder / "rules" / "own.toml"
    written = file.read_text()
    for sign in (r'signs = ["\\d+ \\d+"]', 'signs = ["(open"]'):
        file.write_text("\n".join(sign if line.startswith("signs = ") else line for line in written.splitlines()))
        assert "of the rule own cannot be looked for" in home.run("diagnose", log, code=1).stderr
