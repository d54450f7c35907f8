"""The connection to a hub: its address, the token, IPv4 alone where IPv6 leads nowhere, and repeated asking."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
from huggingface_hub import HfApi, get_token, hf_hub_url, set_client_factory
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils import build_hf_headers, get_session  # type: ignore[attr-defined]

from stoker import __version__
from stoker.errors import Refused, StokerError, WrongUse
from stoker.fetch.listing import HubFile, Listing, read_listing
from stoker.fetch.patience import Patience, read_retry_after, step_s
from stoker.fetch.refusals import Asked, refusal, unreachable
from stoker.records import FetchSettings

DEFAULT_ENDPOINT = "https://huggingface.co"
PROBE_S = 2.0
BUSY, FAILING = (408, 429), (500, 502, 503, 504)
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
PROXIES = ("ALL_PROXY", "all_proxy")
T = TypeVar("T")


class Wire:
    """One hub, as one fetch talks to it."""

    def __init__(self, settings: FetchSettings, token: str | None, patience: Patience) -> None:
        check_online()
        self.settings, self.patience = settings, patience
        self.endpoint = find_endpoint(settings.endpoint, os.environ.get("HF_ENDPOINT"))
        self.token = token if is_private_enough(self.endpoint) else None
        if token and not self.token:
            patience.tell(f"your token is not sent to {self.endpoint}: whoever is on the way could read it")
        self.ipv4_only, self.ipv4_because = choose_ipv4(settings.ipv4_only, self.endpoint)
        limits = httpx.Timeout(settings.stall_s, connect=settings.connect_s)
        set_client_factory(lambda: make_client(limits, self.ipv4_only))
        self.api = HfApi(
            endpoint=self.endpoint, token=self.token or False, library_name="stoker", library_version=__version__
        )
        self.headers = build_hf_headers(token=self.token or False, library_name="stoker", library_version=__version__)

    def asked(self, repository: str, asked: str) -> Asked:
        """Returns what errors have to know of a question."""
        return Asked(self.endpoint, repository, asked, self.token is not None)

    def list_files(self, repository: str, asked: str) -> Listing:
        """Returns the repository at a branch, tag or commit."""
        question = self.asked(repository, asked)
        ask, limit_s = self.api.model_info, self.settings.stall_s
        return self.insist(question, lambda: read_listing(
            repository, asked, ask(repository, revision=asked, files_metadata=True, timeout=limit_s)
        ))  # fmt: skip

    def insist(self, question: Asked, ask: Callable[[], T]) -> T:
        """Asks until there is an answer or the limits are reached."""
        failures = 0
        while True:
            self.patience.check()
            try:
                return ask()
            except HfHubHTTPError as problem:
                failures = self.wait_for(question, problem.response, failures)
            except httpx.RequestError as problem:
                failures += 1
                if failures >= self.settings.tries:
                    raise unreachable(question, problem, failures) from None
                self.patience.wait(step_s(failures), f"{self.endpoint} cannot be reached ({type(problem).__name__})")
            except (ValueError, TypeError, KeyError, AttributeError) as problem:  # an answer that is no hub's
                raise StokerError(
                    f"{self.endpoint} does not answer as a hub does", why=f"{type(problem).__name__} in its answer",
                    next_step="check `endpoint` of [fetch] and HF_ENDPOINT",
                ) from problem  # fmt: skip

    def wait_for(self, question: Asked, response: httpx.Response, failures: int) -> int:
        """Waits as the answer asks for and returns the failures in a row; raises where waiting helps nothing."""
        status = response.status_code
        if status not in BUSY + FAILING:
            raise refusal(question, status, response.headers)
        failures += 1
        if status in FAILING and failures >= self.settings.tries:
            raise refusal(question, status, response.headers)
        said_s = read_retry_after(response.headers, time.time())
        self.patience.wait(step_s(failures) if said_s is None else said_s, f"the hub answers {status}")
        return failures

    @contextmanager
    def stream(self, listing: Listing, file: HubFile, offset: int) -> Iterator[httpx.Response]:
        """Asks for a file's content from an offset on; the token is not sent to other hosts that the hub redirects to."""
        url = hf_hub_url(listing.repository, file.name, revision=listing.revision, endpoint=self.endpoint)
        headers = {**self.headers, "Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with get_session().stream("GET", url, headers=headers) as response:
            yield response


def find_endpoint(chosen: str | None, from_environment: str | None) -> str:
    """Returns the hub's address: yours, else that of HF_ENDPOINT, else the public hub's."""
    found = (chosen or from_environment or DEFAULT_ENDPOINT).rstrip("/")
    address = urlsplit(found)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise WrongUse(f"HF_ENDPOINT is no address: {found[:80]}", next_step="give it as https://HOST, or unset it")
    return found


def make_client(limits: httpx.Timeout, ipv4_only: bool) -> httpx.Client:
    """Returns a client with limits on connecting and on silence."""
    mounts = None
    if ipv4_only and not any(os.environ.get(name) for name in PROXIES):  # a proxy is what we connect to
        mounts = {"all://": httpx.HTTPTransport(local_address="0.0.0.0")}
    return httpx.Client(follow_redirects=True, timeout=limits, mounts=mounts)


def check_online() -> None:
    """Raises Refused where the environment forbids the hub's library to use the network."""
    for name in OFFLINE:
        if os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE"):
            raise Refused("nothing can be fetched", why=f"{name} is set", next_step=f"unset {name}, and try again")


def read_token() -> str | None:
    """Returns the token that the hub's own tools would use."""
    return get_token()


def is_private_enough(endpoint: str) -> bool:
    """Tells whether a token may be sent there: encrypted, or to this machine itself."""
    address = urlsplit(endpoint)
    if address.scheme == "https":
        return True
    host = address.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def choose_ipv4(wanted: bool | None, endpoint: str) -> tuple[bool, str]:
    """Returns whether to use IPv4 alone, and why; where nobody said, the hub is tried over IPv6 once, with a limit."""
    if wanted is not None:
        return wanted, "as you said" if wanted else ""
    address = urlsplit(endpoint)
    host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False, ""  # the first question will say so
    by_ipv6 = [entry[4] for entry in found if entry[0] == socket.AF_INET6]
    if not by_ipv6 or len(by_ipv6) == len(found) or _connects(by_ipv6[0]):
        return False, ""
    return True, f"{host} has an IPv6 address that does not answer within {PROBE_S:.0f} s"


def _connects(address: tuple[object, ...]) -> bool:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        try:
            probe.connect(address)
        except OSError:
            return False
    return True
