"""The certificate by which other boxes know this one: made once, self-signed, and never renewed, since it is pinned."""

from __future__ import annotations

import datetime
import os
import ssl
from hashlib import sha256
from pathlib import Path

from stoker.errors import Refused
from stoker.gateway.trunk.frames import PROTOCOL

# Boxes' clocks may be apart, and who pins a certificate asks for that one alone, so its dates say nothing.
FROM, UNTIL = (datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2020, 2120))


def read_or_make_identity(file: Path) -> str:
    """Returns the SHA-256 of the certificate in a file, which is made where there is none; raises Refused for a bad one."""
    if not file.exists():
        _write(file, _make())
    try:
        file.chmod(0o600)
        text = file.read_text()
        begin = text.index("-----BEGIN CERTIFICATE-----")
        return sha256(ssl.PEM_cert_to_DER_cert(text[begin:].strip())).hexdigest()
    except (OSError, ValueError) as problem:
        raise Refused(
            f"this box's certificate {file} cannot be read", why=str(problem),
            next_step="move it away and start again; every box that joined this one has to join anew",
        ) from problem  # fmt: skip


def make_server_tls(file: Path) -> ssl.SSLContext:
    """Returns what listens for other boxes' doors."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # connections are kept instead; and a connection that has spoken unasked is not used again
    context.set_alpn_protocols([PROTOCOL])
    context.load_cert_chain(file)
    return context


def _make() -> bytes:
    # Imported by the one start that makes the certificate, and by nothing else: it takes 50 ms.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stoker box")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(FROM).not_valid_after(UNTIL)
    certificate = builder.sign(key, hashes.SHA256())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(serialization.Encoding.PEM)


def _write(file: Path, text: bytes) -> None:
    fresh = file.with_suffix(".new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        out.write(text)
    fresh.replace(file)
