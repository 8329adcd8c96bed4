"""Makes one attempt to deliver.

It goes from the slot to the settlement: sign, send, classify, decide. Whatever fails here is a failed attempt of this
delivery, never a dead worker.

Endpoints with a forbidden address are named in the log (`BlockedEndpoints`). Mostly the API accepted them, and this
process was started without its setting. Each attempt would fail in the same way until none is left, and only a reader
of single attempts would notice.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random

import structlog
from msgspec.structs import replace

from hookline import ids
from hookline.clock import Clock
from hookline.errors import EndpointUnusable, HooklineError, Invalid
from hookline.failpoints import failpoint
from hookline.ids import Ids
from hookline.model import Attempt, EndpointId, ErrorKind, Outcome, State
from hookline.pipeline.catalogue.host_limits import Host
from hookline.pipeline.catalogue.prepared_endpoint import PreparedEndpoint
from hookline.pipeline.lanes.lane import Lane
from hookline.pipeline.lanes.payload_memory import PayloadMemory
from hookline.pipeline.sending.contract import Sender, SendResult
from hookline.rules.outcome import classify, is_accepted
from hookline.rules.redirect import next_url
from hookline.rules.retry_after import asked_wait
from hookline.rules.settlement import Dead, Delivered, RetryAt, decide
from hookline.store.contract import Loaded, Settlement, Store

_HEADERS_KEPT_BYTES = 2_048

log = structlog.get_logger()


class Flight:
    """A delivery under way."""

    __slots__ = (
        "began",
        "body",
        "delivery",
        "final_url",
        "full",
        "health",
        "hop",
        "hops",
        "is_probe",
        "lane",
        "number",
        "owner",
        "prepared",
        "started_at",
        "wall",
    )

    def __init__(
        self, owner: "Deliverer", lane: Lane, prepared: PreparedEndpoint, delivery: Loaded, *, is_probe: bool
    ) -> None:
        self.owner = owner
        self.lane = lane
        self.prepared = prepared
        self.delivery = delivery
        self.health = lane.health
        self.number = delivery.attempts + 1
        self.body = delivery.payload
        self.is_probe = is_probe
        self.hop: Host | None = None  # the host that a redirect led to, if it is another one with a cap
        self.full: Host | None = None  # likewise, if it was at its cap: the delivery waits for it
        self.hops = 0
        self.final_url: str | None = None
        self.began = 0.0
        self.started_at = 0.0
        self.wall = 0.0

    def done(self, answer: SendResult) -> None:
        self.owner.land(self, answer)

    def visit(self, host: Host | None) -> bool:
        """Count the request at the host that a redirect points to; False: that host is at its cap."""
        if host is None or host is self.prepared.host:
            return True
        if host.in_flight >= host.cap:
            self.full = host
            return False
        host.in_flight += 1
        self.hop = host
        return True

    def leave(self) -> None:
        """The request to the redirect's host is answered."""
        if self.hop is not None:
            self.hop.in_flight -= 1  # lanes that wait for the host are called with the next pulse
            self.hop = None


class Deliverer:
    """Sends what the dispatcher admits and turns answers into settlements."""

    def __init__(
        self,
        store: Store,
        sender: Sender,
        memory: PayloadMemory,
        clock: Clock,
        ids: Ids,
        rng: Random,
        *,
        canonical: Callable[[str], str],
    ) -> None:
        self._store = store
        self._sender = sender
        self._memory = memory
        self._clock = clock
        self._ids = ids
        self._rng = rng
        self._canonical = canonical  # checks a URL that a redirect points to; raises Invalid
        self.on_landed: Callable[[Flight, Settlement, float | None], None]  # with the wait that was asked for
        self.on_unsent: Callable[[Flight], None]
        self._blocked = BlockedEndpoints(clock)
        self._fetches: dict[asyncio.Task[None], None] = {}
        self.under_way: set[bytes] = set()

    def send(self, lane: Lane, delivery: Loaded, is_probe: bool) -> None:
        """Begin an attempt; its end is reported to `on_landed`, or to `on_unsent` if no byte was sent."""
        assert lane.prepared is not None  # noqa: S101 - Lane.can_send() saw to it
        flight = Flight(self, lane, lane.prepared, delivery, is_probe=is_probe)
        self.under_way.add(delivery.id)
        if delivery.payload is None:
            task = asyncio.get_running_loop().create_task(self._fetch_and_send(flight))
            self._fetches[task] = None
            task.add_done_callback(self._fetches.pop)
        else:
            self._send(flight)

    async def close(self) -> None:
        """Cancel the reads of large payloads that are still under way."""
        for task in self._fetches:
            task.cancel()
        await asyncio.gather(*self._fetches, return_exceptions=True)

    async def _fetch_and_send(self, flight: Flight) -> None:
        try:
            flight.body = await self._store.payload(ids.event_of(flight.delivery.id))
        except HooklineError as error:
            log.debug("payload.failed", error=str(error))
            self._put_back(flight)
            return
        except asyncio.CancelledError:
            self._put_back(flight)
            raise
        self._send(flight)

    def _send(self, flight: Flight) -> None:
        flight.began = self._clock.monotonic()
        flight.started_at = self._clock.now()
        flight.wall = self._clock.wall()
        body = flight.body
        try:
            assert body is not None  # noqa: S101 - fetched, or there from the start
            request = flight.prepared.request(flight.delivery, body, number=flight.number, wall=flight.wall)
        except MemoryError:
            self._put_back(flight)
            return
        except EndpointUnusable as error:
            self._fail(flight, str(error))
            return
        except Exception as error:
            log.exception("delivery.failed", delivery=ids.show("delivery", flight.delivery.id))
            self._fail(flight, type(error).__name__)
            return
        self._sender.send(request, flight.done)

    def _fail(self, flight: Flight, detail: str) -> None:
        """No request could be made; reported in the loop's next step, because the caller must not recurse."""
        answer = SendResult(duration=0.0, error=ErrorKind.INTERNAL, detail=detail)
        asyncio.get_running_loop().call_soon(partial(self.land, flight, answer, was_made=False))

    def _follow(self, flight: Flight, answer: SendResult) -> SendResult | None:
        """Send the request to the URL of a redirect, if the endpoint allows it; else the answer that counts.

        A host gets no more requests by redirects than by its own endpoints: if it is full, the delivery is put back, and
        the first host is asked again when there is room at the other one.
        """
        endpoint = flight.prepared.endpoint
        if flight.hops >= endpoint.max_redirects:
            return answer
        current = flight.final_url or endpoint.url
        url = next_url(answer.status, _header(answer, b"location"), current=current)
        left = endpoint.timeout - (self._clock.monotonic() - flight.began)
        if url is None or left <= 0:
            return answer
        try:
            url = self._canonical(url)
        except Invalid as error:
            # A forbidden address is the same failure whether a redirect names it or a name leads to it.
            return _blocked(answer) if error.code == "url_forbidden" else answer
        flight.hops += 1
        flight.final_url = url
        request = flight.prepared.redirected(
            flight.delivery,
            flight.body or b"",
            url=url,
            number=flight.number,
            wall=flight.wall,
            timeout=left,
        )
        if flight.visit(flight.prepared.host_of(request.target.host)):
            self._sender.send(request, flight.done)
        else:
            self._put_back(flight)
        return None

    def land(self, flight: Flight, answer: SendResult, *, was_made: bool = True) -> None:
        """An attempt ended, or its request could not even be made."""
        failpoint("answer.after")
        delivery = flight.delivery
        if flight.hop is not None:
            flight.leave()
        if not answer.sent and (answer.short or not flight.hops):
            self._put_back(flight)
            return
        try:
            if answer.status is not None and 300 <= answer.status < 400:
                followed = self._follow(flight, answer)
                if followed is None:
                    return
                answer = followed
            settlement = self._settlement(flight, answer, with_evidence=was_made)
            asked = None if settlement.attempt.outcome is Outcome.ACCEPTED else self._asked(answer)
        except Exception as error:
            flight.leave()
            log.exception("delivery.failed", delivery=ids.show("delivery", delivery.id))
            failed = SendResult(
                duration=answer.duration, error=ErrorKind.INTERNAL, detail=type(error).__name__
            )
            settlement, asked = self._settlement(flight, failed, with_evidence=False), None
        self.under_way.discard(delivery.id)
        self.on_landed(flight, settlement, asked)
        if delivery.payload is None:
            self._let_go(flight)

    def _asked(self, answer: SendResult) -> float | None:
        if answer.status is None or answer.status < 300:
            return None
        value = _header(answer, b"retry-after")
        return None if value is None else asked_wait(value, wall=self._clock.now())

    def _put_back(self, flight: Flight) -> None:
        self.under_way.discard(flight.delivery.id)
        self.on_unsent(flight)
        if flight.delivery.payload is None:
            self._let_go(flight)

    def _let_go(self, flight: Flight) -> None:
        """The payload is no longer needed: give its bytes back."""
        flight.body = None
        self._memory.give_back(flight.lane, flight.health, flight.delivery.payload_bytes)

    def _settlement(self, flight: Flight, answer: SendResult, *, with_evidence: bool = True) -> Settlement:
        delivery = flight.delivery
        published_at = None  # a replay is no part of the time that its event took
        if not delivery.replays:
            # An event for later counts from when it is due, as far as its first attempt knows.
            published_at = delivery.created_at if delivery.attempts else delivery.due_at
        if answer.error is None and is_accepted(answer.status) and not flight.hops:
            # The path of nearly every attempt: there is nothing to decide.
            attempt = Attempt(
                id=self._ids.attempt(),
                delivery_id=delivery.id,
                number=flight.number,
                replays=delivery.replays,
                at=flight.started_at,
                outcome=Outcome.ACCEPTED,
                duration=answer.duration,
                status=answer.status,
                timings=answer.timings,
                response_body=answer.body,
                response_truncated=answer.truncated,
            )
            return Settlement(
                attempt,
                delivery.endpoint_id,
                flight.lane.epoch,
                State.DELIVERED,
                delivery.due_at,
                waited_since=delivery.due_at,
                published_at=published_at,
            )
        asked = self._asked(answer)
        outcome, kind = classify(
            answer.status, answer.error, asks_to_wait=asked is not None, retried=flight.prepared.retried
        )
        attempt = Attempt(
            id=self._ids.attempt(),
            delivery_id=delivery.id,
            number=flight.number,
            replays=delivery.replays,
            at=flight.started_at,
            outcome=outcome,
            duration=answer.duration if not flight.hops else self._clock.monotonic() - flight.began,
            status=answer.status,
            final_url=flight.final_url,
            timings=answer.timings,
            response_body=answer.body,
            response_truncated=answer.truncated,
        )
        if outcome is not Outcome.ACCEPTED:
            attempt = replace(attempt, error=kind, error_detail=answer.detail)
            if kind is ErrorKind.BLOCKED_ADDRESS:
                self._blocked.note(delivery.endpoint_id, answer.detail)
            if with_evidence:
                attempt = self._with_evidence(attempt, flight, answer)
        decision = decide(
            outcome,
            attempt=flight.number,
            policy=flight.prepared.policy,
            now=self._clock.now(),
            roll=self._rng.random(),
            asked=asked,
        )
        settled = Settlement(
            attempt,
            delivery.endpoint_id,
            flight.lane.epoch,
            State.DELIVERED,
            delivery.due_at,
            waited_since=delivery.due_at,
            published_at=published_at,
        )
        match decision:
            case Delivered():
                return settled
            case RetryAt(at):
                return replace(settled, state=State.PENDING, due_at=at)
            case Dead(reason):
                gone = flight.prepared.endpoint.updated_at if outcome is Outcome.GONE else None
                return replace(settled, state=State.DEAD, reason=reason, gone=gone)

    def _with_evidence(self, attempt: Attempt, flight: Flight, answer: SendResult) -> Attempt:
        """The attempt with what is kept only if it was not accepted, for people who ask why."""
        received: dict[str, str] = {}
        size = 0
        for name, value in answer.headers:
            size += len(name) + len(value)
            if size > _HEADERS_KEPT_BYTES:
                break
            received[name.decode("latin-1").lower()] = value.decode("latin-1")
        return replace(
            attempt,
            request_url=flight.prepared.endpoint.url,
            request_headers=flight.prepared.shown_headers(
                flight.delivery, flight.body or b"", number=flight.number, wall=flight.wall
            ),
            response_headers=received if answer.status is not None else None,
        )


def _blocked(answer: SendResult) -> SendResult:
    """The answer in place of a redirect to an address that is forbidden."""
    detail = "The redirect leads to an address or a port that this worker may not send to."
    return SendResult(answer.duration, error=ErrorKind.BLOCKED_ADDRESS, detail=detail, timings=answer.timings)


def _header(answer: SendResult, wanted: bytes) -> str | None:
    for name, value in answer.headers:
        if name.lower() == wanted:
            return value.decode("latin-1")
    return None


SAY_AGAIN = 3_600.0  # seconds between two lines about one endpoint
REMEMBERED = 10_000  # endpoints; their owners choose names that point inside, and how many of them


class BlockedEndpoints:
    """Logs endpoints whose address is forbidden, at most once an hour for each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[EndpointId, float] = {}

    def note(self, endpoint: EndpointId, detail: str | None) -> None:
        """An attempt was not made because of its address."""
        at = self._clock.monotonic()
        said = self._said.get(endpoint)
        if said is not None and at - said < SAY_AGAIN:
            return
        self._said.pop(endpoint, None)
        if len(self._said) >= REMEMBERED:
            del self._said[next(iter(self._said))]  # the one logged longest ago
        self._said[endpoint] = at
        log.warning(
            "endpoint.blocked",
            endpoint_id=ids.show("endpoint", endpoint),
            error=detail,
            note="its attempts fail until they run out: set HOOKLINE_ALLOW_NETWORKS here too, as it is where "
            "the endpoint was accepted, or disable the endpoint",
        )
