"""The control API's uses that the dashboard was made for; everything else it does by those that were there before."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from stoker.flows.control import Control
from stoker.records import Diagnosis, Machine, Plan, ServiceView, SwitchView, TimelineView
from stoker.records.dashboard import SentEvent, Shown
from stoker.records.suggesting import SuggestionsView
from stoker.records.watching import HistoryView
from stoker.web.events import EventStream
from stoker.web.feed import Feed
from stoker.web.offers import Offer
from stoker.web.services import NAMED
from stoker.web.wire import answer_json, read_number

HOUR_S = 3600.0
PAST = "A service's past, or the machine's where none is named."
SUGGESTED = "What would run well on this machine, the best first."
EVENTS = "What the dashboard shows, as server-sent events: everything first, then what changed."


def dashboard_offers(control: Control) -> list[Offer]:
    """Returns the uses."""
    feed = Feed(lambda: control.show())

    async def events(request: Request) -> EventStream:
        return EventStream(feed.follow())

    async def show(request: Request) -> Response:
        return answer_json(await control.show())

    async def start(request: Request) -> Response:
        return answer_json(await control.start(request.path_params["name"]))

    async def restart(request: Request) -> Response:
        return answer_json(await control.restart(request.path_params["name"]))

    async def switch(request: Request) -> Response:
        return answer_json(await control.switch_to(request.path_params["name"]))

    async def plan(request: Request) -> Response:
        return answer_json(control.looking.plan(request.path_params["name"]))

    async def timeline(request: Request) -> Response:
        return answer_json(await control.looking.timeline(request.path_params["name"]))

    async def diagnosis(request: Request) -> Response:
        return answer_json(await control.looking.diagnosis(request.path_params["name"]))

    async def history(request: Request) -> Response:
        span_s = max(1.0, read_number(request, "span_s", HOUR_S))
        return answer_json(await control.looking.history(request.query_params.get("service") or None, span_s))

    async def machine(request: Request) -> Response:
        return answer_json(await control.looking.machine())

    async def suggestions(request: Request) -> Response:
        return answer_json(await control.looking.suggestions())

    return [
        Offer("GET", "/api/events", events, EVENTS, SentEvent, kind="text/event-stream"),
        Offer("GET", "/api/dashboard", show, "What the dashboard shows now.", Shown),
        Offer("GET", "/api/machine", machine, "What is known of this machine.", Machine),
        Offer("GET", "/api/suggestions", suggestions, SUGGESTED, SuggestionsView),
        Offer("GET", "/api/history", history, PAST, HistoryView, asks={"service": str, "span_s": float}),
        Offer("GET", f"{NAMED}/plan", plan, "How a service runs, each setting with its reason.", Plan),
        Offer("GET", f"{NAMED}/timeline", timeline, "What a service's last start was made of.", TimelineView),
        Offer("GET", f"{NAMED}/diagnosis", diagnosis, "What a service's log says of a failure.", Diagnosis),
        Offer("POST", f"{NAMED}/start", start, "Let a service run that is known by name.", ServiceView),
        Offer("POST", f"{NAMED}/restart", restart, "Let a service that is READY stop and start again.", ServiceView),
        Offer("POST", f"{NAMED}/switch", switch, "Put a service in the place of others, by name.", SwitchView),
    ]
