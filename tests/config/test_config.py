"""`stoker.toml`: what it says is checked whole, and every fault names its path."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.config import Config, Paths, demo_model, find_paths, read_config
from stoker.errors import WrongUse
from stoker.records import DoorSettings, Wish
from support import fails


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "stoker.toml"


@pytest.mark.parametrize(
    "text",
    [
        '[service.a]\nmodel = "~nobody-here/m.gguf"\n', '[service.a]\nmodel = "/m"\nmounts = ["~nobody-here/c:/c"]\n',
        '[service.a]\nmodel = "/m"\nboxes = ["this", "~nobody-here/b.json"]\n',
        '[gateway]\ntls_certificate = "~nobody-here/c.pem"\n',
        '[knowledge]\nfolders = ["~nobody-here/notes"]\n',
        '[[workflow.w.step]]\nname = "a"\ncommand = ["true"]\ncwd = "~nobody-here"\n',
    ],
)  # fmt: skip
def test_a_user_that_nobody_knows_is_named(file: Path, text: str) -> None:
    file.write_text(text)
    with fails(WrongUse, "~nobody-here", "does not know", "write the whole path"):
        read_config(file)


def test_a_name_that_may_not_be_looked_for_is_a_hubs(file: Path) -> None:
    name = "org/" + "x" * 300
    file.write_text(f'[service.a]\nmodel = "{name}"\n')
    assert read_config(file).services["a"].model == name


def test_a_missing_file_is_an_empty_one(file: Path) -> None:
    assert read_config(file) == Config()


def test_an_empty_file_gives_the_defaults_and_loopback(file: Path) -> None:
    file.touch()
    config = read_config(file)
    assert (config.gateway.host, config.gateway.port, config.services) == ("127.0.0.1", 8700, {})
    assert config.source == str(file)


def test_everything_that_a_file_says_is_read(file: Path) -> None:
    file.write_text(
        '[gateway]\nport = 0\nallowed_hosts = ["spark.local"]\n[limits]\nload_s = 3\nrestarts = 0\n'
        '[service.chat]\nmodel = "/m.gguf"\nspeculation = "ngram"\nparallel = 2\nreasoning = "off"\n'
        '[service."qwen3.8-27b"]\nmodel = "~/q.gguf"\n'
    )
    config = read_config(file)
    assert config.gateway.allowed_hosts == ("spark.local",)
    assert (config.limits.load_s, config.limits.restarts, config.limits.drain_s) == (3.0, 0, 30.0)
    assert config.services["chat"] == Wish("chat", "/m.gguf", speculation="ngram", parallel=2, reasoning="off")
    assert config.services["qwen3.8-27b"].name == "qwen3.8-27b"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[gatway]\n", ["unknown key `gatway`", "did you mean `gateway`?"]),
        (
            "colour = 1\n",
            ["unknown key `colour`", "known here: alias, boxes, fetch, gateway, idle, knowledge, limits, service, watch"],
        ),
        ("[gateway]\nprot = 1\n", ["unknown key `gateway.prot`", "did you mean `port`?"]),
        ("[idle]\nidle = 1\n", ["unknown key `idle.idle`", "did you mean `idle_s`?"]),
        ('[workflow.w]\nthn = "stop"\n', ["unknown key `workflow.w.thn`", "did you mean `then`?"]),
        ('[[workflow.w.step]]\nname = "a"\ncomand = ["x"]\n', ["`workflow.w.step[0].comand`", "did you mean `command`?"]),
        ('[[workflow.w.steps]]\nname = "a"\n', ["unknown key `workflow.w.steps`", "did you mean `step`?"]),
        ("[fetch]\nipv4 = true\n", ["unknown key `fetch.ipv4`", "did you mean `ipv4_only`?"]),
        ("[limits]\nrestart = 1\n", ["unknown key `limits.restart`", "did you mean `restarts`?"]),
        ('[service.a]\nmodle = "x"\n', ["unknown key `service.a.modle`", "did you mean `model`?", "ignored in silence"]),
        (
            '[service.a]\nmodel = "x"\ndraft_token = 1\n',
            ["unknown key `service.a.draft_token`", "did you mean `draft_tokens`?"],
        ),
        ('[service.a]\nmodel = "x"\n[service.a.more]\n', ["unknown key `service.a.more`"]),
        ('[service.a]\nmodel = "x"\nondemand = true\n', ["unknown key `service.a.ondemand`", "did you mean `on_demand`?"]),
        ("[gateway]\nwait = 1\n", ["unknown key `gateway.wait`", "did you mean `wait_s`?"]),
    ],
)
def test_an_unknown_key_is_an_error_with_its_path_and_the_near_miss(file: Path, text: str, parts: list[str]) -> None:
    file.write_text(text)
    with fails(WrongUse, str(file), *parts):
        read_config(file)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gateway = 1\n", ["`gateway` should be a table", "write [gateway]"]),
        ("service = 1\n", ["`service` should hold tables", "write [service.NAME]"]),
        ("[service]\na = 1\n", ["`service` should hold tables"]),
        ('[gateway]\nport = "80"\n', ["Expected `int`, got `str` - at `gateway.port`", "table [gateway]"]),
        ("[gateway]\nport = 70000\n", ["<= 65535 - at `gateway.port`"]),
        ("[gateway]\nport = -1\n", [">= 0 - at `gateway.port`"]),
        ("[gateway]\nallowed_hosts = ['a', 1]\n", ["got `int` - at `gateway.allowed_hosts[1]`"]),
        ("[gateway]\nbody_limit_bytes = -5\n", ["at `gateway.body_limit_bytes`"]),
        ("[limits]\nload_s = -1\n", [">= 0.0 - at `limits.load_s`"]),
        ("[limits]\nload_s = inf\n", ["at `limits.load_s`"]),
        ("[limits]\nload_s = nan\n", ["at `limits.load_s`"]),
        ("[limits]\nrestarts = 1.5\n", ["Expected `int`, got `float` - at `limits.restarts`"]),
        ("[fetch]\nworkers = 0\n", [">= 1 - at `fetch.workers`", "table [fetch]"]),
        ("[fetch]\nendpoint = 'hub'\n", ["at `fetch.endpoint`"]),
        ("[fetch]\nxet = 'no'\n", ["Expected `bool", "at `fetch.xet`"]),
        ("[service.a]\n", ["missing required field `model` - at `service.a`", "no engine has engine"]),
        ("workflow = 1\n", ["`workflow` should hold tables", "write [workflow.NAME]"]),
        ("[workflow.w]\n", ["`workflow.w` has no steps", "write [[workflow.w.step]]"]),
        ("[workflow.w]\nstep = 'a'\n", ["`workflow.w` has no steps"]),
        ("[workflow.w]\nstep = ['a']\n", ["`workflow.w.step[0]` should be a table"]),
        ("[[workflow.w.step]]\ncommand = ['x']\n", ["missing required field `name`", "at `workflow.w.step[0]`"]),
        ("[[workflow.w.step]]\nname = 'a'\ncommand = 'x'\n", ["got `str` - at `workflow.w.step[0].command`"]),
        ("[[workflow.w.step]]\nname = 'a'\ncommand = ['']\n", ["at `workflow.w.step[0].command[0]`"]),
        ("[[workflow.w.step]]\nname = 'a'\ncommand = ['x']\nlimit_s = 0\n", ["> 0.0 - at `workflow.w.step[0].limit_s`"]),
        ("[[workflow.w.step]]\nname = 'a'\n", ["the step does nothing - at `workflow.w.step[0]`"]),
        ("[[workflow.w.step]]\nname = 'then'\ncommand = ['x']\n", ["`then` cannot be a step's name"]),
        ("[[workflow.w.step]]\nname = '../a'\ncommand = ['x']\n", ["`../a` cannot be a step's name"]),
        (
            "[[workflow.w.step]]\nname = 'a'\nservice = 'dem'\n",
            ["called `dem` - at `workflow.w.step[0].service`", "`demo`?"],
        ),
        ("[workflow.w]\nthen = 'x'\n[[workflow.w.step]]\nname = 'a'\nservice = 'demo'\n", ["at `workflow.w.then`"]),
        ("[workflow.A]\n[[workflow.A.step]]\nname = 'a'\nservice = 'demo'\n", ["`A` cannot be a workflow's name"]),
        ("[idle]\ndefault_service = 'x'\n", ["no service called `x` - at `idle.default_service`", "services here: demo"]),
        ("[idle]\nidle_s = 0\n", ["> 0.0 - at `idle.idle_s`"]),
        ("[service.a]\nmodel = 1\n", ["got `int` - at `service.a.model`"]),
        ("[service.a]\nmodel = 'x'\non_demand = 1\n", ["Expected `bool`, got `int` - at `service.a.on_demand`"]),
        ("[service.a]\nmodel = 'x'\nidle_s = 0\n", ["> 0.0 - at `service.a.idle_s`"]),
        ("[service.a]\nmodel = 'x'\nrunning = 0\n", [">= 1 - at `service.a.running`"]),
        ("[gateway]\nwait_s = -1\n", [">= 0.0 - at `gateway.wait_s`"]),
        (
            "[service.a]\nmodel = 'x'\nidle_s = 9\n[idle]\ndefault_service = 'a'\n",
            ["`service.a.idle_s` would stop the service that `idle.default_service` brings back"],
        ),
        (
            "[service.a]\nmodel = 'x'\non_demand = true\n[service.b]\nmodel = 'y'\nserved_name = 'a'\non_demand = true\n",
            ["two services with `on_demand` answer as `a`", "one name must mean one service"],
        ),
        ("alias = 1\n", ["`alias` should be a table"]),
        ("[alias]\na = 1\n", ["an alias is 1 - at `alias.a`"]),
        ("[alias]\na = ' '\n", ["an alias is ' ' - at `alias.a`"]),
        ('[alias]\n"a\\nb" = "x"\n', ["an alias is 'a\\nb'"]),
        ("[alias]\na = 'b'\nb = 'c'\n", ["`a` stands for `b`, which is an alias itself", "let `a` stand for `c`"]),
        ("[alias]\na = 'b'\n[service.a]\nmodel = 'x'\n", ["`a` is the name of a model already, that of `service.a`"]),
        (
            "[alias]\nm = 'b'\n[service.a]\nmodel = 'x'\nserved_name = 'm'\n",
            ["`m` is the name of a model already, that of `service.a`"],
        ),
        (
            "[alias]\na = '*'\n[service.a]\nmodel = 'x'\nserved_name = 'm'\n",
            ["the alias `a` stands for `*`, but there is a service called `a`"],
        ),
        (
            "[alias]\nc = 'b'\n[service.a]\nmodel = 'x'\nserved_name = 'b'\n[service.b]\nmodel = 'x'\nserved_name = 'd'\n",
            ["`b` is a service, and the model of `service.a` - at `alias.c`"],
        ),
        ("[service.a]\nmodel = 'x'\nspeculation = 'drft'\n", ["'drft' - at `service.a.speculation`"]),
        ("[service.a]\nmodel = 'x'\nparallel = true\n", ["got `bool` - at `service.a.parallel`"]),
    ],
)
def test_a_wrong_value_is_an_error_with_its_path(file: Path, text: str, parts: list[str]) -> None:
    file.write_text(text)
    with fails(WrongUse, str(file), *parts):
        read_config(file)


@pytest.mark.parametrize(
    "name", ["../x", "a b", "", "/etc/passwd", "A", ".hidden", "-x", "a/b", "a\\nb", "x" * 64, "é", "a;b", "a\\u0000"]
)
def test_a_hostile_service_name_is_refused(file: Path, name: str) -> None:
    file.write_text(f'[service."{name}"]\nmodel = "x"\n')
    with fails(WrongUse, "cannot be a service's name", "lower-case letters, digits"):
        read_config(file)


def test_a_service_cannot_take_another_name_than_its_tables(file: Path) -> None:
    file.write_text('[service.good]\nmodel = "x"\nname = "../../evil"\n')
    with fails(WrongUse, "unknown key `service.good.name`"):
        read_config(file)


@pytest.mark.parametrize(
    "raw",
    [
        b"[gateway\n", b"a = \n", b"a = 1\na = 2\n", b"\xff\xfe[gateway]", b"[service.a]\nmodel = '\xe9'\n", b"\x00",
        b"a = " + b"[" * 100_000, b"a = " + b"9" * 5000,
    ],
)  # fmt: skip
def test_what_is_not_toml_is_an_error_that_names_the_file(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    with fails(WrongUse, f"{file} is not valid TOML", "why: ", "mend that line"):
        read_config(file)


def test_broken_toml_is_told_with_its_line(file: Path) -> None:
    file.write_text("[gateway]\nport = 1\nhost = oops\n")
    with fails(WrongUse, "at line 3"):
        read_config(file)


def test_a_folder_in_place_of_the_file_is_an_error(file: Path) -> None:
    file.mkdir()
    with fails(WrongUse, f"{file} cannot be read", "Is a directory"):
        read_config(file)


def test_state_and_configuration_lie_in_the_xdg_folders() -> None:
    paths = find_paths({"HOME": "/home/ada"})
    assert paths == Paths(Path("/home/ada/.local/state/stoker"), Path("/home/ada/.config/stoker/stoker.toml"))
    paths = find_paths({"HOME": "/home/ada", "XDG_STATE_HOME": "/s", "XDG_CONFIG_HOME": "/c"})
    assert paths == Paths(Path("/s/stoker"), Path("/c/stoker/stoker.toml"))


def test_an_empty_xdg_variable_counts_as_not_set() -> None:
    paths = find_paths({"HOME": "/home/ada", "XDG_STATE_HOME": "", "STOKER_STATE": ""})
    assert paths.state == Path("/home/ada/.local/state/stoker")


def test_stokers_own_variables_win_over_the_xdg_folders() -> None:
    given = {"HOME": "/h", "XDG_STATE_HOME": "/s", "STOKER_STATE": "/mine", "STOKER_CONFIG": "/mine.toml"}
    assert find_paths(given) == Paths(Path("/mine"), Path("/mine.toml"))


def test_every_file_of_the_state_lies_in_the_state_folder() -> None:
    paths = Paths(Path("/s"), Path("/c.toml"))
    files = [
        paths.key_file, paths.engine_key_file, paths.database, paths.lock, paths.daemon_log, paths.address_file,
        paths.engine_log("chat"),
    ]  # fmt: skip
    assert len(set(files)) == len(files)
    assert all(file.is_relative_to("/s") for file in files)


def test_the_bundled_models_are_there() -> None:
    assert demo_model().is_file()
    assert demo_model(draft=True).is_file()
    assert demo_model() != demo_model(draft=True)


def test_two_steps_of_one_name_are_an_error(file: Path) -> None:
    file.write_text("[[workflow.w.step]]\nname = 'a'\nservice = 'demo'\n" * 2)
    with fails(WrongUse, "`a` cannot be a step's name - at `workflow.w.step[1].name`"):
        read_config(file)


def test_a_steps_folder_and_program_begin_at_the_file_and_other_words_stay(file: Path) -> None:
    file.write_text("[[workflow.w.step]]\nname = 'a'\ncommand = ['./write', './out']\ncwd = 'articles'\n")
    [step] = read_config(file).workflows["w"].step
    assert step.command == (str(file.parent / "write"), "./out")
    assert step.cwd == str(file.parent / "articles")
    file.write_text("[[workflow.w.step]]\nname = 'a'\ncommand = ['python3', 'x.py']\n")
    [step] = read_config(file).workflows["w"].step
    assert (step.command, step.cwd) == (("python3", "x.py"), str(file.parent))


def test_what_the_door_does_with_a_service_is_no_part_of_its_wish(file: Path) -> None:
    door = "on_demand = true\nidle_s = 60\nrunning = 2\nwaiting = 0\nwait_s = 0\n"
    file.write_text(f"[gateway]\nwaiting = 9\n[service.a]\nmodel = '/x'\n{door}[service.b]\nmodel = '/x'\n")
    config = read_config(file)
    assert config.services["a"] == Wish("a", "/x")
    assert config.doors == {"a": DoorSettings(True, 60.0, 2, 0, 0.0), "b": DoorSettings()}
    assert (config.gateway.running, config.gateway.waiting, config.gateway.wait_s) == (None, 9, 600.0)


def test_an_alias_stands_for_a_model_a_service_or_whatever_runs_and_may_be_its_services_name(file: Path) -> None:
    file.write_text(
        "[service.coder]\nmodel = '/x'\nserved_name = 'qwen3'\n[service.b]\nmodel = '/x'\n"
        "[alias]\ncoder = 'qwen3'\n'gpt-4o' = 'b'\nany = '*'\nlater = 'adopted-model'\n"
    )
    assert read_config(file).aliases == {"coder": "qwen3", "gpt-4o": "b", "any": "*", "later": "adopted-model"}
    file.write_text("[service.coder]\nmodel = '/x'\nserved_name = 'qwen3'\n[alias]\ncoder = 'coder'\n")
    assert read_config(file).aliases == {"coder": "coder"}
