"""Tests an endpoint and waits for its answer, also past an open circuit.

The same calls in the same order as `hookline endpoints recover`: the test event first, then the reset, without which it
would wait for the next probe. A test that was not accepted is taken back, so that it is not sent or counted later.
"""

from contextlib import suppress

import msgspec

from hookline.api.inside import CallersApi
from hookline.clock import Clock
from hookline.dashboard.look import words
from hookline.dashboard.page import Tone
from hookline.errors import NotFound, WrongState
from hookline.reports.views import AttemptReport, DeliveryReport, EndpointReport

PATIENCE_S = 20.0  # a person waits at the page; the test goes on without them
_BRIEFLY_S = 2.0
_LOOK_EVERY_S = 0.1


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a test, in words."""

    tone: Tone
    headline: str
    text: str = ""
    delivery_id: str | None = None
    is_open: bool = False  # its circuit, after the test
    next_probe_at: str | None = None
    died: int | None = None  # since it last accepted something; None: was not looked for
    died_since: str = ""


async def recovered(api: CallersApi, clock: Clock, endpoint: EndpointReport) -> Tested:
    """Test the endpoint past its circuit; if it accepts, say what died since it last did."""
    tested = await _tested(api, clock, endpoint, passes_circuit=True)
    if tested.tone != "ok":
        return tested
    since = endpoint.circuit_state.last_success_at or endpoint.created_at
    chosen = {"endpoint_id": endpoint.id, "since": since}
    tried = await api.post("/v1/replays", {"filter": chosen, "dry_run": True})
    waiting = endpoint.counts.pending + endpoint.counts.awaiting_retry
    on_their_way = words.counted(waiting, "delivery is", "deliveries are") + " on the way." if waiting else ""
    return msgspec.structs.replace(
        tested,
        headline="It is back:",
        text=f"{tested.text} The circuit is closed. {on_their_way}".strip(),
        died=tried.matched,
        died_since=since,
    )


async def only_tested(api: CallersApi, clock: Clock, endpoint: EndpointReport) -> Tested:
    """Test the endpoint; its circuit is left alone, so an open one keeps the test waiting."""
    return await _tested(api, clock, endpoint, passes_circuit=False)


async def _tested(api: CallersApi, clock: Clock, endpoint: EndpointReport, *, passes_circuit: bool) -> Tested:
    try:
        sent = (await api.post("/v1/endpoints/{endpoint_id}/test", endpoint_id=endpoint.id)).id
    except WrongState as error:  # paused or disabled
        return Tested(tone="warn", headline="Not tested.", text=str(error))
    is_resting = endpoint.circuit_state.state != "closed"
    if is_resting and passes_circuit:
        await api.post("/v1/endpoints/{endpoint_id}/circuit/reset", endpoint_id=endpoint.id)
    attempt, delivery = await _answered(api, clock, sent, endpoint, waits=passes_circuit or not is_resting)
    if attempt is None:
        return await _unanswered(api, endpoint, delivery)
    said = _answer(attempt)
    if attempt.error is None:
        return Tested(tone="ok", headline="It accepted the test:", text=f"{said}.", delivery_id=sent)
    await _taken_back(api, sent)
    after = await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=endpoint.id)
    is_open = after.circuit_state.state != "closed"
    text = f"{said}. The test was taken back."
    if is_resting and passes_circuit and not is_open:
        text += " Its circuit opens again by itself if more fails."
    return Tested(
        tone="bad",
        headline="Not yet:",
        text=text,
        delivery_id=sent,
        is_open=is_open,
        next_probe_at=after.circuit_state.next_probe_at,
    )


async def _answered(
    api: CallersApi, clock: Clock, sent: str, before: EndpointReport, *, waits: bool
) -> tuple[AttemptReport | None, DeliveryReport]:
    """The first attempt if there is one in time; behind a circuit that is open, or opens again, there is none."""
    ends_at = clock.monotonic() + (PATIENCE_S if waits else _BRIEFLY_S)
    while True:
        attempts = (await api.get("/v1/deliveries/{delivery_id}/attempts", delivery_id=sent)).data
        delivery: DeliveryReport = await api.get("/v1/deliveries/{delivery_id}", delivery_id=sent)
        if attempts or delivery.state != "pending" or clock.monotonic() >= ends_at:
            return (attempts[-1] if attempts else None), delivery
        endpoint = await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=before.id)
        if waits and _opened_again(before, endpoint) and not delivery.in_flight:
            return None, delivery
        await clock.sleep(_LOOK_EVERY_S)


def _opened_again(before: EndpointReport, after: EndpointReport) -> bool:
    return after.circuit_state.opened_at not in (None, before.circuit_state.opened_at)


async def _unanswered(api: CallersApi, endpoint: EndpointReport, delivery: DeliveryReport) -> Tested:
    after = await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=endpoint.id)
    circuit = after.circuit_state
    if delivery.in_flight:
        return Tested(
            tone="warn",
            headline="No answer yet.",
            text=f"It was asked {PATIENCE_S:.0f} s ago and has up to {words.milliseconds(endpoint.timeout_ms)}.",
            delivery_id=delivery.id,
        )
    await _taken_back(api, delivery.id)
    if _opened_again(endpoint, after):
        return Tested(
            tone="bad",
            headline="Not yet:",
            text=f"what waited was sent first and failed, so the circuit opened again ({circuit.reason}). "
            "The test was taken back.",
            delivery_id=delivery.id,
            is_open=True,
            next_probe_at=circuit.next_probe_at,
        )
    waits = words.WAITS_FOR.get(delivery.waiting_for or "", "its turn")
    return Tested(
        tone="warn",
        headline="Not sent:",
        text=f"the test waited for {waits} and was taken back.",
        delivery_id=delivery.id,
        is_open=circuit.state != "closed",
        next_probe_at=circuit.next_probe_at,
    )


async def _taken_back(api: CallersApi, sent: str) -> None:
    """Leave no test event behind that waits, or died."""
    for path in ("/v1/deliveries/{delivery_id}/cancel", "/v1/dead-letters/{delivery_id}/discard"):
        with suppress(WrongState, NotFound):
            await api.post(path, delivery_id=sent)
            return


def _answer(attempt: AttemptReport) -> str:
    kind = None if attempt.error is None else attempt.error.kind
    said = words.answer(attempt.status, kind)
    return said if attempt.duration_ms is None else f"{said} in {words.milliseconds(attempt.duration_ms)}"
