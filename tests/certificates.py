"""Certificates for tests of TLS."""

from __future__ import annotations

import subprocess
from pathlib import Path

NEW = (
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-days",
    "2",
    "-subj",
    "/CN=t",
)
NAMES = ("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost")


def make_certificate(folder: Path, name: str = "server", *more: str) -> tuple[Path, Path]:
    """Makes a self-signed certificate and its key; returns their files."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    words = [*NEW, *NAMES, "-out", str(certificate), "-keyout", str(key), *(more or ("-nodes",))]
    subprocess.run(words, check=True, capture_output=True)
    return certificate, key
