"""A file that Stoker mends: what was there before stays beside it, however soon it is mended again."""

from __future__ import annotations

from pathlib import Path

from stoker.flows.client_files import write_mended

TIMES = 5


def test_each_copy_is_kept_also_of_changes_within_one_second(tmp_path: Path) -> None:
    file = tmp_path / "stoker.toml"
    file.write_text("0")
    file.chmod(0o600)
    copies = [write_mended(file, str(number + 1)) for number in range(TIMES)]
    assert [copy.read_text() for copy in copies] == [str(number) for number in range(TIMES)]
    assert {copy.stat().st_mode & 0o777 for copy in copies} == {0o600}
    assert file.read_text() == str(TIMES)
    assert {one.name for one in tmp_path.iterdir()} == {"stoker.toml", *(copy.name for copy in copies)}
