"""Talks to the daemon from the command line, over its control API.

http.client and not httpx: its import costs a fifth of the time, and `stoker status` has 150 ms for everything. The first
call imports it: `stoker bench` of an address makes none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from stoker.config import SERVICE_NAME, Paths
from stoker.errors import BY_EXIT_CODE, StokerError, WrongUse
from stoker.flows.ownership import read_owner
from stoker.records import (
    AdoptView,
    AdoptWish,
    Diagnosis,
    KeptVerification,
    KeyView,
    KeyWish,
    Machine,
    NewKey,
    Plan,
    Record,
    RevokedKey,
    ServedModel,
    ServiceView,
    State,
    StatusView,
    SwitchView,
    UsageBy,
    UsageView,
    Wish,
)
from stoker.records.boxes import BoxesView, BoxView, BoxWish, CodeWish, JoinCode
from stoker.records.fixing import FixAsked, FixTried, FixView
from stoker.records.watching import Silence, WatchView

if TYPE_CHECKING:
    import http.client

OK = 200
CALL_LIMIT_S = 60.0
QUICK_LIMIT_S = 5.0
PLAN_LIMIT_S = 180.0  # an engine that is asked for its flags loads torch first: 20 s on two cores, 120 are given to it
STREAM_LIMIT_S = 3600.0  # the gateway gives up a silent engine before that (gateway.engine_silence_limit_s)
T = TypeVar("T")


class Fault(Record, frozen=True):
    """A StokerError as the control API carries it."""

    what: str
    why: str
    next_step: str
    rule: str
    exit_code: int


class _Model(msgspec.Struct):
    """An entry of `/v1/models`, as far as it is needed here."""

    id: str
    service: str
    state: str
    context_tokens: int | None = None


class _Models(msgspec.Struct):
    """The reply of `/v1/models`."""

    data: list[_Model]


def fault_of(problem: StokerError) -> Fault:
    """Returns a StokerError as a record."""
    return Fault(problem.what, problem.why, problem.next_step, problem.rule, problem.exit_code)


class Daemon:
    """A running daemon, found through the address in its state folder."""

    def __init__(self, url: str, key: str, control_key: str) -> None:
        self.url = url
        self.key = key
        self._control_key = control_key

    def status(self) -> StatusView:
        """Returns the status."""
        return self._call("GET", "/api/status", None, StatusView, QUICK_LIMIT_S)

    def models(self) -> tuple[ServedModel, ...]:
        """Returns what the gateway offers its clients, other names among it."""
        listed = self._call("GET", "/v1/models", None, _Models, QUICK_LIMIT_S)
        return tuple(ServedModel(one.id, one.service, one.context_tokens, one.state == State.READY) for one in listed.data)

    def up(self, wish: Wish, *, is_trial: bool = False) -> ServiceView:
        """Asks for a service to run; `rollback` never leads back to a trial, unless it is asked for in earnest later."""
        return self._call("POST", "/api/services?trial=1" if is_trial else "/api/services", wish, ServiceView, PLAN_LIMIT_S)

    def adopt(self, wish: AdoptWish) -> AdoptView:
        """Asks for a running engine to be taken over."""
        return self._call("POST", "/api/adopt", wish, AdoptView)

    def down(self, name: str) -> ServiceView:
        """Asks for a service to stop."""
        return self._call("POST", f"{_path_of(name)}/down", None, ServiceView)

    def switch(self, wish: Wish) -> SwitchView:
        """Begins to put a service in the place of those that leave it no room."""
        return self._call("POST", "/api/switch", wish, SwitchView)

    def fix(self, name: str) -> FixView:
        """Returns what would mend a service's last failure."""
        return self._call("GET", f"{_path_of(name)}/fix", None, FixView, PLAN_LIMIT_S)

    def apply_fix(self, name: str, digest: str) -> SwitchView:
        """Begins to try a fix that was shown; the daemon writes it into stoker.toml once the service is READY."""
        return self._call("POST", f"{_path_of(name)}/fix", FixAsked(digest), SwitchView, PLAN_LIMIT_S)

    def last_fix(self) -> FixTried | None:
        """Returns what came of the last fix that was begun; None where there was none since the daemon began."""
        return self._call("GET", "/api/fix", None, FixTried | None)  # type: ignore[arg-type]

    def await_fix(self, since: float, limit_s: float = 20.0) -> FixTried | None:
        """Returns what came of the fix begun then once that is known, or what is known of the last one after the limit."""
        query = urlencode({"since": since, "limit_s": limit_s})
        return self._call("GET", f"/api/fix?{query}", None, FixTried | None)  # type: ignore[arg-type]

    def rollback(self, name: str) -> SwitchView:
        """Begins to bring a service back to its former plan."""
        return self._call("POST", f"{_path_of(name)}/rollback", None, SwitchView)

    def await_switch(self, seen: int, since: float = 0.0, limit_s: float = 20.0) -> SwitchView:
        """Returns the switch begun then (0: the last) once it has more steps than were seen, or as it is after the limit."""
        query = urlencode({"seen": seen, "since": since, "limit_s": limit_s})
        return self._call("GET", f"/api/switch?{query}", None, SwitchView)

    def wait(self, name: str, seen: State, limit_s: float = 20.0) -> ServiceView:
        """Returns the service once its state is another than the one seen, or as it is after the limit."""
        query = urlencode({"seen": seen.value, "limit_s": limit_s})
        return self._call("GET", f"{_path_of(name)}/wait?{query}", None, ServiceView)

    def tail(self, name: str, count: int) -> list[str]:
        """Returns the last lines of an engine's output."""
        return self._call("GET", f"{_path_of(name)}/logs?{urlencode({'lines': count})}", None, list[str])

    def keep_verification(self, kept: KeptVerification) -> None:
        """Has what was found out about a service kept."""
        self._call("POST", f"/api/services/{quote(kept.service, safe='@')}/verifications", kept, KeptVerification)

    def forget(self, name: str) -> None:
        """Drops a service that rests."""
        self._call("DELETE", _path_of(name), None, dict[str, str])

    def add_key(self, wish: KeyWish) -> NewKey:
        """Makes a key."""
        return self._call("POST", "/api/keys", wish, NewKey)

    def keys(self) -> tuple[KeyView, ...]:
        """Returns all keys."""
        return self._call("GET", "/api/keys", None, tuple[KeyView, ...])

    def revoke_key(self, name: str) -> RevokedKey:
        """Ends a key."""
        return self._call("DELETE", f"/api/keys/{quote(name, safe='')}", None, RevokedKey)

    def usage(self, by: UsageBy, since: float | None) -> UsageView:
        """Returns who used what since a time."""
        return self._call("GET", f"/api/usage?{urlencode({'by': by, 'since': since or 0})}", None, UsageView)

    def boxes(self) -> BoxesView:
        """Returns the links to other boxes."""
        return self._call("GET", "/api/boxes", None, BoxesView, QUICK_LIMIT_S)

    def join_code(self, *, may_act: bool) -> JoinCode:
        """Makes a join code."""
        return self._call("POST", "/api/join-codes", CodeWish(may_act), JoinCode)

    def add_box(self, wish: BoxWish) -> BoxView:
        """Joins another box."""
        return self._call("POST", "/api/boxes", wish, BoxView)

    def remove_box(self, name: str) -> BoxesView:
        """Ends a link."""
        return self._call("DELETE", f"/api/boxes/{quote(name, safe='')}", None, BoxesView)

    def start(self, name: str) -> ServiceView:
        """Asks for a service to run that the daemon knows by name."""
        return self._call("POST", f"{_path_of(name)}/start", None, ServiceView, PLAN_LIMIT_S)

    def switch_to(self, name: str) -> SwitchView:
        """Begins to put a service that the daemon knows by name in the place of others."""
        return self._call("POST", f"{_path_of(name)}/switch", None, SwitchView, PLAN_LIMIT_S)

    def diagnosis(self, name: str) -> Diagnosis:
        """Returns what the log of a service says of a failure."""
        return self._call("GET", f"{_path_of(name)}/diagnosis", None, Diagnosis)

    def machine(self) -> Machine:
        """Returns what is known of the daemon's machine."""
        return self._call("GET", "/api/machine", None, Machine)

    def plan_of(self, name: str) -> Plan:
        """Returns the plan of a service."""
        return self._call("GET", f"{_path_of(name)}/plan", None, Plan)

    def watch(self) -> WatchView:
        """Returns what watching sees now."""
        return self._call("GET", "/api/watch", None, WatchView, QUICK_LIMIT_S)

    def silence(self, silence: Silence) -> tuple[Silence, ...]:
        """Keeps quiet about some alerts; returns all silences that last."""
        return self._call("POST", "/api/silences", silence, tuple[Silence, ...])

    def stop(self) -> None:
        """Asks the daemon to end."""
        self._call("POST", "/api/stop", None, dict[str, str])

    def is_answering(self) -> bool:
        """Tells whether the daemon answers at all."""
        try:
            with self._open("GET", "/health", None, QUICK_LIMIT_S) as reply:
                return reply.status == OK
        except StokerError:
            return False

    def stream(self, method: str, path: str, body: object) -> Iterator[bytes]:
        """Yields the lines of a streamed reply; raises StokerError where the reply is an error."""
        with self._open(method, path, body, STREAM_LIMIT_S) as reply:
            if reply.status != OK:
                raise _refusal(reply.status, reply.read())
            yield from reply

    def call(self, method: str, path: str, body: object, kind: type[T], limit_s: float = CALL_LIMIT_S) -> T:
        """Returns what the daemon answers to any use of its control API; raises the error that it tells of."""
        return self._call(method, path, body, kind, limit_s)

    def _call(self, method: str, path: str, body: object, kind: type[T], limit_s: float = CALL_LIMIT_S) -> T:
        with self._open(method, path, body, limit_s) as reply:
            raw = reply.read()
        if reply.status != OK:
            raise _refusal(reply.status, raw)
        return msgspec.json.decode(raw, type=kind)

    def _connection(self, limit_s: float) -> http.client.HTTPConnection:
        import http.client

        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=limit_s)

    @contextlib.contextmanager
    def _open(
        self, method: str, path: str, body: object, limit_s: float = CALL_LIMIT_S
    ) -> Iterator[http.client.HTTPResponse]:
        import http.client

        connection = self._connection(limit_s)
        key = self.key if path.startswith("/v1/") else self._control_key
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        try:
            connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as problem:
            raise StokerError(
                f"the daemon at {self.url} did not answer", why=str(problem) or type(problem).__name__,
                next_step="look at `stoker status`",
            ) from problem  # fmt: skip
        finally:
            connection.close()


def _path_of(name: str) -> str:
    if SERVICE_NAME.fullmatch(name) is None:
        raise WrongUse(f"`{name}` is no service's name", next_step="`stoker status` lists the services")
    return f"/api/services/{name}"


def _refusal(status: int, raw: bytes) -> StokerError:
    try:
        answer: dict[str, Any] = msgspec.json.decode(raw)
        if "fault" in answer:
            fault = msgspec.convert(answer["fault"], Fault)
            kind = BY_EXIT_CODE.get(fault.exit_code, StokerError)
            return kind(fault.what, why=fault.why, next_step=fault.next_step, rule=fault.rule)
        message = answer["error"]["message"]
        code = answer["error"].get("code")
        next_step = "name one of these, or `stoker up` serves another" if code == "model_not_found" else ""
        why = f"the gateway answered HTTP {status}{f', {code}' if code else ''}"
        return StokerError(message, why=why, next_step=next_step)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, KeyError, TypeError):
        return StokerError(f"the daemon answered HTTP {status}", why=raw[:300].decode(errors="replace"))


def find_daemon(paths: Paths) -> Daemon | None:
    """Returns the daemon that owns a state folder if it answers, else None."""
    daemon = read_daemon(paths)
    return daemon if daemon is not None and daemon.is_answering() else None


def read_daemon(paths: Paths) -> Daemon | None:
    """Returns the daemon that owns a state folder, whether it answers or not; None where none runs."""
    if read_owner(paths) is None:
        return None
    try:
        files = (paths.address_file, paths.key_file, paths.control_key_file)
        return Daemon(*(file.read_text().strip() for file in files))
    except OSError:
        return None
