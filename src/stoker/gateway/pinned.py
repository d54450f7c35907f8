"""TLS to another box: whoever shows the pinned certificate is the box, and nobody else is told anything."""

from __future__ import annotations

import hmac
import ssl
from functools import cache
from hashlib import sha256

MAKES_NEW = "the box was set up anew, or somebody is in between; if it was you: `stoker boxes remove`, then `boxes add`"

NOW = "x-stoker-now"  # of an answer: the answering box's clock, so that times in it are understood by another one


class WrongCertificate(OSError):
    """Another certificate than the one that was pinned was shown."""

    def __init__(self) -> None:
        super().__init__("its certificate is not the one that it had when it was joined")


@cache
def client_tls(protocol: str = "") -> ssl.SSLContext:
    """Returns what connects to boxes, offering that protocol; names and dates in certificates are not looked at."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if protocol:
        context.set_alpn_protocols([protocol])
    return context


def check_pin(found: ssl.SSLObject | ssl.SSLSocket | None, pin: str) -> None:
    """Raises WrongCertificate unless the other end showed the certificate whose SHA-256 begins so; ask it before writing."""
    shown = found.getpeercert(binary_form=True) if found is not None else None
    if not pin or shown is None or not hmac.compare_digest(sha256(shown).hexdigest()[: len(pin)], pin):
        raise WrongCertificate
