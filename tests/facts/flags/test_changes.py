"""What changed between two versions of a command line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stoker.facts.engine.catalogs import load_all
from stoker.facts.engine.flag_changes import compare_catalogs, replacements, say_default
from stoker.records import Catalog, Flag
from stoker.records.flags import CatalogChanges, Changed, Renamed


def catalog(version: str, *flags: Flag, gone: dict[str, str] | None = None) -> Catalog:
    """Returns a version of an engine that nobody knows."""
    return Catalog("engine", version, "made up", flags, gone=gone or {})


def change(before: tuple[Flag, ...], after: tuple[Flag, ...]) -> CatalogChanges:
    """Returns what is different."""
    return compare_catalogs(catalog("1", *before), catalog("2", *after))


def test_nothing_is_different_between_a_version_and_itself() -> None:
    for one in [*load_all("vllm"), *load_all("sglang")]:
        changes = compare_catalogs(one, one)
        assert [getattr(changes, name) for name in changes.__struct_fields__[3:]] == [()] * 8


def test_what_is_new_and_what_is_gone_is_told() -> None:
    changes = change((Flag("--both"), Flag("--dropped", type="int")), (Flag("--both"), Flag("--fresh", type="switch")))
    assert (changes.added, changes.removed) == ((Flag("--fresh", type="switch"),), (Flag("--dropped", type="int"),))
    assert changes.renamed == ()


def test_a_flag_that_is_spelled_alike_and_takes_the_same_was_renamed() -> None:
    changes = change((Flag("--enable-deepep-waterfill", type="switch"),), (Flag("--enable-waterfill", type="switch"),))
    [renamed] = changes.renamed
    assert (renamed.before, renamed.after, renamed.old_works) == ("--enable-deepep-waterfill", "--enable-waterfill", False)
    assert (changes.added, changes.removed) == ((), ())


def test_a_flag_that_takes_something_else_was_not_renamed() -> None:
    changes = change((Flag("--cache-size", type="int"),), (Flag("--cache-sizes", type="int", many=True),))
    assert changes.renamed == ()
    assert [flag.name for flag in changes.added] == ["--cache-sizes"]
    assert change((Flag("--cache-size", default=1),), (Flag("--cache-sizes", default=2),)).renamed == ()


def test_each_old_flag_gets_one_new_name_the_most_alike_first() -> None:
    changes = change((Flag("--cache-bytes"), Flag("--cache-byte")), (Flag("--cache-bytes-x"),))
    assert [one.before for one in changes.renamed] == ["--cache-bytes"]
    assert [flag.name for flag in changes.removed] == ["--cache-byte"]


def test_an_alias_that_became_the_name_tells_of_a_renaming() -> None:
    [moved] = change((Flag("--tp", aliases=("-t",)),), (Flag("--tensor-parallel", aliases=("-t",)),)).renamed
    assert moved == Renamed("--tp", "--tensor-parallel", "-t means both")
    [merged] = change((Flag("--one"), Flag("--two")), (Flag("--two", aliases=("--one",)),)).renamed
    assert merged == Renamed("--one", "--two", "the old name is an alias of it", old_works=True)


def test_what_the_engine_said_in_between_tells_of_a_renaming() -> None:
    before, after = catalog("1", Flag("--old", type="int")), catalog("3", Flag("--mode"))
    between = catalog("2", Flag("--old", type="int", deprecated="use --mode=fast"), Flag("--mode"))
    assert compare_catalogs(before, after).renamed == ()
    assert compare_catalogs(before, after, [between]).renamed == (Renamed("--old", "--mode=fast", "engine 2 says so"),)


def test_what_the_engine_refuses_now_and_names_another_for_was_renamed() -> None:
    after = catalog("2", Flag("--spec-draft-n-max"), gone={"--draft-max": "--spec-draft-n-max", "--odd": ""})
    [renamed] = compare_catalogs(catalog("1", Flag("--draft-max"), Flag("--odd")), after).renamed
    assert (renamed.before, renamed.after) == ("--draft-max", "--spec-draft-n-max")


def test_a_replacement_that_is_gone_too_is_no_new_name() -> None:
    between = catalog("2", Flag("--old", deprecated="use --newer"), Flag("--newer"))
    changes = compare_catalogs(catalog("1", Flag("--old")), catalog("3", Flag("--newest-of-all")), [between])
    assert changes.renamed == ()
    assert [flag.name for flag in changes.removed] == ["--old"]


def test_the_newest_advice_comes_first() -> None:
    known = replacements([catalog("1", Flag("--a", deprecated="use --b")), catalog("2", Flag("--a", deprecated="use --c"))])
    assert known == {"--a": [("--c", "engine 2 says so"), ("--b", "engine 1 says so")]}
    assert replacements([catalog("1", Flag("--a", deprecated="deprecated"))]) == {}


def test_other_defaults_types_and_words_are_told() -> None:
    before = (Flag("--share", type="float", default=0.9), Flag("--size", type="int"), Flag("--on", type="switch"))
    after = (
        Flag("--share", type="float", default=0.92),
        Flag("--size", type="count", many=True, aliases=("-s",)),
        Flag("--on", type="switch", negated=("--no-on",)),
    )
    changes = change(before, after)
    assert changes.defaults == (Changed("--share", "0.9", "0.92"),)
    assert changes.types == (Changed("--size", "int", "count ..."),)
    assert changes.words == (Changed("--size", "", "-s"), Changed("--on", "", "--no-on"))


def test_a_flag_that_goes_out_of_use_is_told_once() -> None:
    changes = change((Flag("--a", type="switch", default=False),), (Flag("--a", type="switch", deprecated="use --b"),))
    assert changes.deprecated == (Changed("--a", "", "use --b"),)
    assert changes.defaults == ()


def test_values_that_came_and_went_are_told() -> None:
    changes = change((Flag("--backend", choices=("a", "b")),), (Flag("--backend", choices=("b", "c", "d")),))
    assert changes.choices == (Changed("--backend", "a", "c, d"),)


def test_a_flag_that_takes_anything_now_lost_no_value() -> None:
    open_now = change((Flag("--backend", choices=("a", "b")),), (Flag("--backend"),))
    assert open_now.choices == (Changed("--backend", "a, b", "anything"),)
    closed_now = change((Flag("--backend"),), (Flag("--backend", choices=("a",)),))
    assert closed_now.choices == (Changed("--backend", "anything", "a"),)


def test_defaults_are_said_as_they_are_written() -> None:
    assert [say_default(value) for value in (None, False, 0, 0.5, "", "auto")] == ["", "false", "0", "0.5", "", "auto"]


NAMES = st.sampled_from(["--alpha", "--alpha-size", "--beta", "--beta-size", "--gamma", "-g"])
MADE = st.builds(
    Flag,
    name=NAMES,
    type=st.sampled_from(["int", "text", "switch"]),
    aliases=st.lists(NAMES, max_size=2).map(tuple),
    deprecated=st.sampled_from(["", "deprecated", "use --beta"]),
)


@given(st.lists(MADE, max_size=5), st.lists(MADE, max_size=5))
def test_every_name_that_is_gone_is_told_of_exactly_once(before: list[Flag], after: list[Flag]) -> None:
    old = tuple({flag.name: flag for flag in before}.values())
    changes = change(old, tuple({flag.name: flag for flag in after}.values()))
    told = [flag.name for flag in changes.removed] + [one.before for one in changes.renamed]
    assert sorted(told) == sorted({flag.name for flag in old} - {flag.name for flag in after})
