"""Brings requests to the engines: finds who answers, waits for its start and for a turn, and sends."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from functools import partial

from stoker.config import GatewayConfig
from stoker.errors import StokerError
from stoker.gateway.admission import Claim, Line, Places, Ticket
from stoker.gateway.asked import Asked, read_asked, read_realtime
from stoker.gateway.chain import chain_of
from stoker.gateway.contents import Contents
from stoker.gateway.directory import Directory, Entry, NoReplica, NoSingleModel
from stoker.gateway.exchange import Exchange, Headers
from stoker.gateway.filtered import filter_exchange
from stoker.gateway.from_doors import read_from_door, refuse_door, refuse_unreached
from stoker.gateway.keyring import OWNER, Caller, out_of_paths, out_of_scope
from stoker.gateway.meter import refuse_denied
from stoker.gateway.metrics import GatewayMetrics
from stoker.gateway.on_demand import (
    find_or_refuse,
    name_real_model,
    name_service,
    refuse_full,
    refuse_unready,
    refuse_unstarted,
)
from stoker.gateway.patience import Patience, wait_limit_s
from stoker.gateway.pool import Pool
from stoker.gateway.refusals import refuse
from stoker.gateway.relay import Relay
from stoker.gateway.routes import FOR_ALL_KEYS, REALTIME, Within
from stoker.gateway.silence import Silence
from stoker.gateway.tail import names_another, read_counted
from stoker.gateway.token_count import count_tokens
from stoker.gateway.way import Way
from stoker.records import Endpoint

OK = 200
Spawn = Callable[[Coroutine[None, None, None], Exchange], None]


class Errand:
    """One request on its way: who asks, for what, of whom."""

    def __init__(self, exchange: Exchange, caller: Caller, entry: Entry, asked: Asked) -> None:
        self.exchange = exchange
        self.caller = caller
        self.entry = entry
        self.asked = asked
        self.begun_at = asyncio.get_running_loop().time()
        self.relay: Relay | None = None
        self.content: str | None = None
        self.tried: frozenset[str] = frozenset()  # replicas that could not be reached
        self.is_from_door = False  # another box's, which knows other replicas


class Serving:
    """All requests to engines, and what is known of them while they run."""

    def __init__(
        self, config: GatewayConfig, directory: Directory, metrics: GatewayMetrics, engine_key: str, spawn: Spawn
    ) -> None:
        self._config = config
        self._directory = directory
        self._metrics = metrics
        self._engine_key = engine_key
        self._spawn = spawn
        self._pool, self._silence = Pool(), Silence(config.engine_silence_limit_s)
        self.contents = Contents(config.contents)
        self._lines: dict[str, Line] = {}
        self._ways: dict[str, Way] = {}
        self._box = ""
        self._awaiting: Counter[str] = Counter()
        self._said_tokens: Counter[str] = Counter()
        self._relays: defaultdict[str, set[Relay]] = defaultdict(set)
        self._heard_at: defaultdict[str, float] = defaultdict(float)

    def in_flight(self, service: str) -> int:
        """Returns how many requests a service answers or has in its line: so many a stop or a switch would turn away."""
        line = self._lines.get(service)
        sent = len(self._relays[service])
        return sent if line is None else max(sent, line.running) + line.waiting

    def waiting(self, service: str) -> int:
        """Returns how many requests to a service wait for their turn, or for its start."""
        line = self._lines.get(service)
        return self._awaiting[service] + (0 if line is None else line.waiting)

    def silent_s(self, service: str) -> float:
        """Returns for how long a service's engine has sent nothing while it had requests; 0 where it has none."""
        return asyncio.get_running_loop().time() - self.heard_at(service) if self._relays[service] else 0.0

    def heard_at(self, service: str) -> float:
        """Returns when a service's engine last sent something to a client, on the event loop's clock; 0 for never."""
        return max(self._heard_at[service], *(relay.heard_at() for relay in self._relays[service]), 0.0)

    def said_tokens(self, service: str) -> int:
        """Returns how many tokens a service's answers said that they have, since this daemon began."""
        return self._said_tokens[service]

    def tokens(self, service: str) -> int:
        """Returns about how many tokens of a service's requests are in flight or wait."""
        line = self._lines.get(service)
        return 0 if line is None else line.tokens

    def name_box(self, name: str) -> None:
        """Has replies of this box's own services name it, from now on."""
        self._box = name
        self._ways.clear()

    def end_all(self, service: str, code: str, message: str) -> None:
        """Ends all that a service answers, in the stream where one is under way: its box is not heard any more.

        What was not sent yet is not: it learns by itself that the box cannot be reached, and finds a replica.
        """
        for relay in list(self._relays[service]):
            if relay.is_sent:
                relay.end_broken(502, code, message)

    def forget(self, service: str) -> None:
        """Forgets a service that is no more and has nothing under way."""
        for known in (self._lines, self._ways, self._relays, self._heard_at, self._said_tokens):
            known.pop(service, None)
        self.contents.forget(service)

    def close(self) -> None:
        """Closes the connections that are kept."""
        self._pool.close()

    def ask_model(self, exchange: Exchange, caller: Caller) -> None:
        """Sends a request to the model that its body names, or a WebSocket's query."""
        asked = read_realtime(exchange) if exchange.request.path == REALTIME else read_asked(exchange)
        if asked is None:
            return
        entry = find_or_refuse(exchange, self._directory, asked.model, caller)
        if entry is not None:
            self._admit(Errand(exchange, caller, entry, asked))

    def ask_within(self, exchange: Exchange, caller: Caller, offered: list[Within], is_service: bool) -> None:
        """Sends a request of any kind to a path of a service's own; what is offered are readings of its name."""
        for within in offered:
            named = self._directory.find_service(within.name) if is_service else None
            entry = named or self._find_model(within.name)
            if entry is not None:
                self._ask_service(exchange, caller, entry, within)
                return
        self._refuse_unknown(exchange, caller, offered[0].name, is_service)

    def ask_exactly(self, exchange: Exchange, caller: Caller, service: str, plan_id: str) -> None:
        """Sends a request of another box's door to the service that it names, if that is READY by that very plan."""
        found = read_from_door(exchange, self._directory, service, plan_id)
        if found is None:
            return
        errand = Errand(exchange, caller, *found)
        errand.is_from_door = True
        self._admit(errand)

    def _find_model(self, name: str) -> Entry | None:
        try:
            return self._directory.find(name)
        except (NoReplica, NoSingleModel):
            return None

    def _refuse_unknown(self, exchange: Exchange, caller: Caller, name: str, is_service: bool) -> None:
        if not is_service:
            find_or_refuse(exchange, self._directory, name, caller)
        elif caller.models is not None:
            refuse_denied(exchange, out_of_scope(caller, name))
        else:
            refuse(exchange, 404, "unknown_service", f"There is no service `{name}` here.")

    def _ask_service(self, exchange: Exchange, caller: Caller, entry: Entry, within: Within) -> None:
        if not (caller.may_ask(entry.model) or caller.may_ask(entry.alias_of or entry.model)):
            refuse_denied(exchange, out_of_scope(caller, within.name))
            return
        if caller.name != OWNER and within.path not in FOR_ALL_KEYS:
            refuse_denied(exchange, out_of_paths(caller, within.path), name_service(entry))
            return
        exchange.request = exchange.request._replace(path=within.path, target=within.target)
        real = entry._replace(model=entry.alias_of or entry.model, alias_of=None)  # what is sent here is not looked into
        self._admit(Errand(exchange, caller, real, Asked("", False, 0)))

    # On the way to the engine.

    def _admit(self, errand: Errand) -> None:
        entry, exchange = errand.entry, errand.exchange
        if exchange.usage is not None:
            exchange.usage.service, exchange.usage.model = entry.service, entry.alias_of or entry.model
        limit_s = wait_limit_s(exchange, entry)  # also where there is no need to: what is wrong is always so
        if limit_s is None:
            return
        if entry.endpoint is not None:
            self._line_up(errand)
        elif entry.on_demand and limit_s:
            self._spawn(self._await_start(errand, limit_s), exchange)
        else:
            refuse_unready(exchange, self._directory, entry)

    async def _await_start(self, errand: Errand, limit_s: float) -> None:
        """Waits with the client until the service is READY, or says after a while for when it may come again."""
        exchange, entry = errand.exchange, errand.entry
        if (waiting := self._awaiting[entry.service]) >= max(1, entry.limits.waiting):  # the first one starts the service
            refuse_full(exchange, entry, f"{waiting} requests wait for it to start")
            return
        self._awaiting[entry.service] += 1
        patience = Patience(exchange, errand.asked.is_stream, self._config.wait_comment_s, lambda: self._now(entry))
        try:
            async with asyncio.timeout(limit_s):
                await patience.during(self._directory.bring(entry.service))
        except TimeoutError:
            if not exchange.done:
                refuse_unready(exchange, self._directory, self._now(entry))
        except StokerError as problem:
            if not exchange.done:  # the client left, or its key was revoked, as the start failed
                refuse_unstarted(exchange, self._now(entry), problem)
        else:
            errand.entry = self._now(entry)
            if not exchange.done:
                self._line_up(errand)
        finally:
            self._awaiting[entry.service] -= 1

    def _now(self, entry: Entry) -> Entry:
        """Returns what is known of a service now, under the name that was asked for."""
        now = self._directory.find_service(entry.service)
        if now is None or now is entry:
            return entry
        return now._replace(model=entry.model, alias_of=entry.alias_of, is_named=entry.is_named)

    def _line_up(self, errand: Errand) -> None:
        caller, entry, exchange = errand.caller, errand.entry, errand.exchange
        line = self._line(entry)
        most = entry.context_tokens  # no request holds more of the cache
        tokens = errand.asked.tokens if most is None else min(errand.asked.tokens, most)
        claim = Claim(caller.name, caller.priority, caller.running, tokens)
        ticket = Ticket(claim, partial(self._take_turn, errand))
        ended = exchange.on_done

        def done() -> None:
            self._end(errand)
            line.leave(ticket)
            ended()

        exchange.on_done = done
        if not line.enter(ticket):
            refuse_full(exchange, entry, line.why_waiting(claim))

    def _line(self, entry: Entry) -> Line:
        places = Places(entry.limits.running, entry.limits.waiting, entry.limits.tokens)
        line = self._lines.get(entry.service)
        if line is None:
            line = self._lines[entry.service] = Line(places)
        line.places = places
        return line

    def _take_turn(self, errand: Errand) -> None:
        exchange = errand.exchange
        if exchange.done:
            return
        entry = errand.entry = self._now(errand.entry)  # the wait may have been long
        if entry.endpoint is None and errand.is_from_door:
            refuse_door(exchange, f"`{entry.model}` is {entry.state} since this request waited.")
        elif entry.endpoint is None:
            refuse_unready(exchange, self._directory, entry)
        else:
            self._send(errand, entry.endpoint)

    def _send(self, errand: Errand, endpoint: Endpoint) -> None:
        way, said_before = self._way_to(endpoint), len(errand.exchange.extra)
        errand.exchange.extra += way.identity  # first: what a filter refuses has them too
        carried = self._change(errand, way) if errand.entry.filters or errand.entry.alias_of else errand.exchange
        if carried is None:
            return
        errand.relay = relay = Relay(carried, way, self._pool, self._silence)
        exchange = errand.exchange
        if endpoint.box:
            relay.on_unreached = partial(self._reroute, errand, said_before)
        elif errand.is_from_door:
            relay.on_unreached = partial(refuse_unreached, exchange)
        self._relays[endpoint.service].add(relay)
        errand.content = self.contents.begin(endpoint.service, exchange.request)
        if not relay.begin():
            self._spawn(relay.run(), carried)

    def _reroute(self, errand: Errand, said_before: int, why: str) -> bool:
        """Asks another replica of the same model, revision and plan, since the first one's box was sent nothing."""
        exchange, entry = errand.exchange, errand.entry
        errand.tried |= {entry.service}
        other = self._directory.find_another(entry, errand.tried)
        if errand.relay is not None:
            self._relays[entry.service].discard(errand.relay)
            self.contents.end(entry.service, errand.content)
        if other is None:
            return False
        del exchange.extra[said_before:]
        exchange.extra.append((b"x-stoker-rerouted", f"{entry.box} {why}".encode("ascii", "replace")))
        errand.entry, errand.relay = other._replace(model=entry.model, alias_of=entry.alias_of), None
        if exchange.usage is not None:
            exchange.usage.service = other.service
        self._line_up(errand)
        return True

    def _way_to(self, endpoint: Endpoint) -> Way:
        way = self._ways.get(endpoint.service)
        if way is None or way.endpoint is not endpoint:
            way = self._ways[endpoint.service] = Way(endpoint, endpoint.key or self._engine_key, self._box)
        return way

    def _change(self, errand: Errand, way: Way) -> Exchange | None:
        """Lets the filters that were asked for change the request; returns what the relay shall see, None once answered."""
        exchange, chain = errand.exchange, chain_of(errand.entry.filters)
        alias = name_real_model(exchange, errand.entry)
        if alias is None:
            return None
        exchange.extra += _listed([*chain.headers, *alias])
        ask = partial(Relay, way=way, pool=self._pool, silence=self._silence)
        return filter_exchange(exchange, chain, partial(count_tokens, ask, way.endpoint.model), self._spawn)

    # What is learnt from a reply.

    def _end(self, errand: Errand) -> None:
        exchange, relay = errand.exchange, errand.relay
        if relay is None:
            return
        service, passage = errand.entry.service, relay.passage
        self._relays[service].discard(relay)
        self.contents.end(service, errand.content)
        self._heard_at[service] = max(self._heard_at[service], relay.heard_at())
        # These know the relay, or who has it: none of them would go before the collector of cycles comes round.
        relay.passage = relay.on_unreached = None
        if passage is None:
            return
        opening, tail = passage.opening, passage.tail
        if exchange.usage is not None:
            counted = read_counted(opening, tail)
            exchange.usage.prompt_tokens, exchange.usage.completion_tokens, exchange.usage.cached_tokens = counted
            if passage.first_at is not None and exchange.status == OK:  # an error has no first token
                exchange.usage.ttft_s = passage.first_at - errand.begun_at
                exchange.usage.streamed = passage.is_stream
            self._said_tokens[service] += counted.completion_tokens or 0
        if errand.asked.model and exchange.status == OK:
            said = names_another(relay.model, opening + b"\n" + tail)
            if said is not None:
                self._metrics.substituted(service, relay.model, said)


def _listed(filters: Headers) -> Headers:
    """Returns one header that lists all that was changed, where anything was."""
    return [(filters[0][0], b", ".join(value for _, value in filters))] if filters else []
