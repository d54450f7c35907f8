"""The archive for a bug report: what is in it, and that none of the secrets planted everywhere is."""

from __future__ import annotations

import getpass
import tarfile
from pathlib import Path

from home import Home

IN_LOG = "hf_LogLogLogLogLogLogLog"
IN_ENVIRONMENT = "plain-words-of-the-environment"
IN_CONFIG = "plain words of the config"
IN_ARGV = "argv-word-without-a-form"
PROMPT = "what nobody else shall read"
SECRETS = (IN_LOG, IN_ENVIRONMENT, IN_CONFIG, IN_ARGV, PROMPT, "jane.doe")
SAID = f"""OSError: [Errno 98] Address already in use
token {IN_LOG} seen, and {IN_CONFIG} too
Received request cmpl-1: prompt: '{PROMPT}', params: n=1
the word {IN_ENVIRONMENT} without a name, in /home/jane.doe/x"""


def unpacked(file: Path) -> dict[str, str]:
    with tarfile.open(file) as archive:
        assert all(member.isfile() and not member.name.startswith(("/", "..")) for member in archive)
        streams = {member.name.partition("/")[2]: archive.extractfile(member) for member in archive}
        return {name: stream.read().decode() for name, stream in streams.items() if stream is not None}


def test_a_bundle_holds_what_a_report_needs_and_no_secret(home: Home, tmp_path: Path) -> None:
    home.environment |= {"SOME_API_KEY": IN_ENVIRONMENT, "VLLM_API_KEY": IN_ENVIRONMENT, "VLLM_LOGGING_LEVEL": "DEBUG"}
    home.add_fake(
        "coder",
        f'environment = {{ MY_PASSWORD = "{IN_CONFIG}" }}\nflags = {{ api-token = "{IN_ARGV}" }}',
        dies="loading",
        prints=SAID,
    )
    home.run("up", "coder", code=1)
    file = tmp_path / "report.tar.gz"
    said = home.run("diagnose", "coder", "--bundle", str(file)).stdout
    assert "look through it before you send it" in said
    parts = unpacked(file)
    assert set(parts) == {
        "README.txt", "daemon.log", "diagnosis.json", "diagnosis.txt", "log.txt", "machine.json", "plan.json",
        "service.json", "state.txt", "variables.txt",
    }  # fmt: skip
    assert all(name in parts["README.txt"] for name in parts if name != "README.txt")
    assert "port-taken" in parts["diagnosis.json"]
    assert "Address already in use" in parts["log.txt"]
    assert "FAILED: the engine ended" in parts["state.txt"]
    assert "VLLM_LOGGING_LEVEL=DEBUG" in parts["variables.txt"]
    assert "SOME_API_KEY" not in parts["variables.txt"]
    keys = [
        file.read_text().strip() for file in (home.paths.key_file, home.paths.control_key_file, home.paths.engine_key_file)
    ]
    for name, text in parts.items():
        for secret in (*SECRETS, *keys):
            assert secret not in text, f"{secret} in {name}"
        assert f"/home/{getpass.getuser()}/" not in text
    assert file.stat().st_mode & 0o077 == 0


def test_a_bundle_of_a_log_of_elsewhere_holds_nothing_of_this_machine(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_text(SAID)
    file = tmp_path / "report.tar.gz"
    home.run("diagnose", str(log), "--bundle", str(file))
    parts = unpacked(file)
    assert set(parts) == {"README.txt", "diagnosis.json", "diagnosis.txt", "log.txt"}
    assert not any(secret in text for secret in (IN_LOG, PROMPT) for text in parts.values())


def test_of_a_very_long_log_both_ends_are_packed(home: Home, tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_text("first line\n" + f"{'x' * 99}\n" * 40_000 + f"hf_{'A1' * 5000}\n{SAID}\n")
    file = tmp_path / "report.tar.gz"
    home.run("diagnose", str(log), "--bundle", str(file))
    text = unpacked(file)["log.txt"]
    assert text.startswith("first line\n")
    assert "Address already in use" in text
    assert "bytes are left out here" in text
    assert "A1A1A1A1" not in text


def test_no_file_is_overwritten_and_only_logs_are_packed(home: Home, tmp_path: Path) -> None:
    log, file = tmp_path / "vllm.log", tmp_path / "report.tar.gz"
    log.write_text(SAID)
    file.write_text("mine")
    assert "is not there yet" in home.run("diagnose", str(log), "--bundle", str(file), code=2).stderr
    assert file.read_text() == "mine"
    said = home.run("diagnose", "-", "--bundle", str(tmp_path / "x"), code=2, input=SAID).stderr
    assert "for a service or a log file" in said
