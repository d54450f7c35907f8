"""The certificate of a gateway that speaks TLS."""

from __future__ import annotations

import ssl

from stoker.errors import WrongUse


def make_tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """Returns what a server needs, or None where no certificate is given; raises WrongUse for one that cannot be used."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise WrongUse("[gateway] has one of tls_certificate and tls_key", next_step="set both, or none")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")  # a daemon has nobody to ask for one
    except (OSError, ssl.SSLError) as problem:
        raise WrongUse(
            f"the gateway cannot use the certificate {certificate} with the key {key}",
            why=str(problem),
            next_step="both are PEM files that the daemon's user can read, and belong to each other",
        ) from problem
    return context
