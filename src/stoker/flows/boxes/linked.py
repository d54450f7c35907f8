"""The control client of another box: what `--on NAME` talks to."""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Iterator

from stoker.config import Paths
from stoker.errors import Refused
from stoker.flows.boxes.clocks import as_here
from stoker.flows.boxes.link_file import find_link, read_links
from stoker.flows.boxes.pinned_http import PinnedConnection
from stoker.flows.client import CALL_LIMIT_S, Daemon
from stoker.gateway.pinned import NOW
from stoker.records import StatusView
from stoker.records.boxes import Link
from stoker.records.watching import WatchView


class LinkedDaemon(Daemon):
    """Another box's daemon, asked over the link with the link's key; that box says what the link may do."""

    def __init__(self, link: Link) -> None:
        super().__init__(f"https://{link.host}:{link.port}", link.key, link.key)
        self._link = link
        self._apart_s = 0.0

    def status(self) -> StatusView:
        """Returns the status, with times as this box's clock has them."""
        return as_here(super().status(), self._apart_s)

    def watch(self) -> WatchView:
        """Returns what watching sees there, with times as this box's clock has them."""
        return as_here(super().watch(), self._apart_s)

    @contextlib.contextmanager
    def _open(
        self, method: str, path: str, body: object, limit_s: float = CALL_LIMIT_S
    ) -> Iterator[http.client.HTTPResponse]:
        with super()._open(method, path, body, limit_s) as reply:
            if theirs := reply.getheader(NOW):
                self._apart_s = time.time() - float(theirs)
            yield reply

    def _connection(self, limit_s: float) -> http.client.HTTPConnection:
        return PinnedConnection(self._link.host, self._link.port, self._link.pin, limit_s)


def find_linked(paths: Paths, name: str, *, act: bool = False) -> LinkedDaemon:
    """Returns the daemon of a linked box; raises WrongUse for one not known, Refused where the link may only look."""
    link = find_link(read_links(paths.links_file), name)
    if act and not link.may_act:
        raise Refused(
            f"the link to `{name}` may ask its models and look, and no more", why="its code was made without --act",
            next_step=f"`stoker boxes code --act` on {name}, then `stoker boxes remove {name}` and `stoker boxes add` here",
        )  # fmt: skip
    return LinkedDaemon(link)
