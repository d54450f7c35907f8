"""TLS with a given certificate: clients speak https, Stoker's own verbs go on, and a bad certificate is an error."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from certificates import make_certificate
from home import Home
from stoker.errors import WrongUse
from stoker.gateway.tls import make_tls
from support import fails


def configure(home: Home, certificate: object, key: object) -> None:
    home.configure(gateway=f'port = 0\ntls_certificate = "{certificate}"\ntls_key = "{key}"')


def https_address(home: Home) -> tuple[str, int]:
    url = urlsplit(home.json("status")["gateway"]["url"])
    assert (url.scheme, url.path) == ("https", "/v1")
    return str(url.hostname), int(url.port or 0)


def ask(home: Home, certificate: Path, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    host, port = https_address(home)
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=30)
    connection.request(method, path, body, {"authorization": f"Bearer {home.paths.key_file.read_text().strip()}"})
    reply = connection.getresponse()
    answered = reply.status, reply.read()
    connection.close()
    return answered


def test_clients_speak_https_and_the_verbs_go_on(home: Home, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    configure(home, certificate, key)
    home.add_fake("other")
    shown = home.run("up", "other").stdout
    url = home.json("status")["gateway"]["url"]
    assert f"address  {url}\n" in shown
    assert f"curl {url}/chat/completions" in shown
    assert https_address(home)[0] == "127.0.0.1"
    assert home.daemon.url.startswith("http://127.0.0.1:")
    assert ask(home, certificate, "GET", "/health") == (200, b'{"status":"ok"}')
    chat = json.dumps({"model": "other", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    status, body = ask(home, certificate, "POST", "/v1/chat/completions", chat)
    assert (status, body.endswith(b"data: [DONE]\n\n")) == (200, True)
    assert "token0" in home.run("ask", "hi", "--model", "other").stdout
    home.run("down")
    assert home.daemon_pid is None


def test_a_plain_client_is_not_answered(home: Home, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    configure(home, certificate, key)
    home.add_fake("other")
    home.run("up", "other")
    host, port = https_address(home)

    async def say() -> bytes:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        said = await reader.read()
        writer.close()
        return said

    with contextlib.suppress(ConnectionError):
        assert b"HTTP" not in asyncio.run(say())
    assert ask(home, certificate, "GET", "/health")[0] == 200


@pytest.mark.parametrize("case", ["missing", "not a certificate", "another's key", "a key with a passphrase", "only one"])
def test_a_certificate_that_cannot_be_used_is_told(home: Home, tmp_path: Path, case: str) -> None:
    certificate, key = make_certificate(tmp_path)
    if case == "missing":
        certificate = tmp_path / "none.pem"
    elif case == "not a certificate":
        certificate.write_text("hello\n")
    elif case == "another's key":
        _, key = make_certificate(tmp_path, "other")
    elif case == "a key with a passphrase":
        certificate, key = make_certificate(tmp_path, "locked", "-passout", "pass:secret")
    configure(home, certificate, key)
    if case == "only one":
        home.configure(gateway=f'port = 0\ntls_certificate = "{certificate}"')
    for words in (("serve",), ("up",)):
        said = home.run(*words, code=2 if words == ("serve",) else None, stdin=subprocess.DEVNULL)
        assert said.returncode != 0
        assert "tls_key" in said.stderr if case == "only one" else str(certificate) in said.stderr
    assert "Traceback" not in home.paths.daemon_log.read_text()
    assert home.daemon_pid is None


def test_a_key_that_only_another_user_can_read_is_told(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    key.chmod(0o000)
    if os.access(key, os.R_OK):
        key.unlink()  # nothing is hidden from root
    with fails(WrongUse, "cannot use the certificate", str(key)):
        make_tls(str(certificate), str(key))


def test_old_versions_are_not_spoken(tmp_path: Path) -> None:
    context = make_tls(*map(str, make_certificate(tmp_path)))
    assert context is not None
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_without_a_certificate_there_is_no_tls() -> None:
    assert make_tls(None, None) is None
