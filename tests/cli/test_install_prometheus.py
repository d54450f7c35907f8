"""`stoker install prometheus`: what it writes, and what it refuses to write over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from home import Home

FILES = ("prometheus.yml", "stoker-rules.yml", "alertmanager.yml", "stoker-dashboard.json")


@pytest.fixture
def here(home: Home) -> Home:
    """A Stoker whose gateway has a port of its own."""
    home.configure('[service.coder]\nmodel = "/m/x.gguf"\n', gateway="port = 8711")
    return home


def written(home: Home, folder: Path, *words: str) -> dict[str, str]:
    home.run("install", "prometheus", "--to", str(folder), *words)
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_it_writes_four_files_that_read_this_gateway(here: Home, tmp_path: Path) -> None:
    files = written(here, tmp_path / "new" / "folder", "--webhook", "http://127.0.0.1:9/x", "--engine-metrics")
    assert sorted(files) == sorted(FILES)
    own, engines = yaml.safe_load(files["prometheus.yml"])["scrape_configs"]
    assert own["static_configs"] == [{"targets": ["127.0.0.1:8711"]}]
    assert own["authorization"] == {"credentials_file": "stoker.key"}
    assert engines["static_configs"][0]["labels"] == {"__param_engine": "coder", "service": "coder"}
    [receiver] = yaml.safe_load(files["alertmanager.yml"])["receivers"]
    assert receiver["webhook_configs"] == [{"url": "http://127.0.0.1:9/x", "send_resolved": True}]
    assert json.loads(files["stoker-dashboard.json"])["title"] == "Stoker"
    key = here.folder / "state" / "gateway.key"
    assert not key.exists() or key.read_text().strip() not in "".join(files.values())


def test_it_is_read_with_tls_where_the_gateway_speaks_it(here: Home, tmp_path: Path) -> None:
    here.configure(gateway='port = 8711\nhost = "0.0.0.0"\ntls_certificate = "/etc/ours.crt"\ntls_key = "/etc/ours.key"')
    [own] = yaml.safe_load(written(here, tmp_path / "to")["prometheus.yml"])["scrape_configs"]
    assert (own["scheme"], own["tls_config"]) == ("https", {"ca_file": "stoker.crt"})
    assert own["static_configs"] == [{"targets": ["127.0.0.1:8711"]}]
    said = here.json("install", "prometheus")["commands"]
    assert "sudo install -m 0644 /etc/ours.crt /etc/prometheus/stoker.crt" in said


def test_people_see_the_files_and_the_commands_and_nothing_is_written(here: Home, tmp_path: Path) -> None:
    said = here.run("install", "prometheus", cwd=tmp_path).stdout
    assert all(f"==> /etc/prometheus/{name}" in said for name in FILES)
    assert "promtool check rules stoker-rules.yml" in said and "tells nobody" in said
    assert list(tmp_path.glob("*.yml")) == []


def test_its_own_files_are_replaced_and_those_of_others_are_not(here: Home, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    before = written(here, folder)
    after = written(here, folder, "--gateway", "spark:8700")
    assert before["prometheus.yml"] != after["prometheus.yml"] and "spark:8700" in after["prometheus.yml"]
    (folder / "alertmanager.yml").write_text("route: {receiver: me}\n")
    said = here.run("install", "prometheus", "--to", str(folder), "--gateway", "other:1", code=3).stderr
    assert f"{folder / 'alertmanager.yml'} would be lost" in said
    assert (folder / "prometheus.yml").read_text() == after["prometheus.yml"], "nothing was written"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gateway", "spark"), "`spark` is no address"),
        (("--alertmanager", "a:b"), "`a:b` is no address"),
        (("--webhook", "127.0.0.1:9"), "is no address of a webhook"),
        (("--scale", "0"), "--scale"),
    ],
)
def test_what_is_no_address_is_refused(here: Home, words: tuple[str, ...], said: str) -> None:
    assert said in here.run("install", "prometheus", *words, code=2).stderr


def test_a_gateway_that_takes_any_port_has_to_be_named(home: Home) -> None:
    said = home.run("install", "prometheus", code=2).stderr
    assert "gateway.port is 0" in said and "--gateway HOST:PORT" in said


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(here: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = here.run("install", "prometheus", "--to", str(tmp_path / "file" / "to"), code=2).stderr
    assert "cannot be written to" in said


def test_a_service_of_that_name_can_still_be_installed(home: Home) -> None:
    home.configure('[service.prometheus]\nmodel = "/m/x.gguf"\n')
    view = home.json("install", "service", "prometheus", "--user", "daemon", "--dry-run")
    assert view["files"][1]["path"] == "/etc/systemd/system/stoker-prometheus.service"
