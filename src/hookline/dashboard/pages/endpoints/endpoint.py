"""Shows one endpoint: how it is, why, and what to press."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from hookline import ids
from hookline.api.inside import CallersApi
from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.look.commands import with_commands
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.endpoints import endpoint_facts as facts
from hookline.dashboard.pages.endpoints import recovery
from hookline.dashboard.pages.overview import Parts, plotted
from hookline.errors import HooklineError, Invalid, NotFound, WrongState
from hookline.model import EndpointId
from hookline.reports.stats import StatsReport
from hookline.reports.views import AlertReport, EndpointReport
from hookline.validate.windows import window_seconds

WINDOWS = {"1h": "The last hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days"}
LATEST = 10
_ONE = "/endpoints/{endpoint_id}"
_API = "/v1/endpoints/{endpoint_id}"


class Unread(NamedTuple):
    """A part of the page that could not be read; the rest stands."""

    detail: str


class _Now(NamedTuple):
    endpoint: EndpointReport
    condition: facts.EndpointCondition
    parts: Parts
    alerts: Sequence[AlertReport]


class EndpointPages:
    """The page of an endpoint, and what is done there."""

    def __init__(self, hookline: Hookline) -> None:
        self._store = hookline.store
        self._clock = hookline.clock
        self.live_of = {"endpoint": self.live_parts}

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [
            PageRoute("GET", _ONE, self.show),
            PageRoute("GET", f"{_ONE}/recover", self.back),
            PageRoute("POST", f"{_ONE}/recover", self.recover),
            PageRoute("GET", f"{_ONE}/test", self.back),
            PageRoute("POST", f"{_ONE}/test", self.test),
            PageRoute("POST", f"{_ONE}/pause", self.pause),
            PageRoute("POST", f"{_ONE}/resume", self.resume),
            PageRoute("POST", f"{_ONE}/enable", self.enable),
            PageRoute("GET", f"{_ONE}/disable", self.ask_disable),
            PageRoute("POST", f"{_ONE}/disable", self.disable),
            PageRoute("GET", f"{_ONE}/circuit", self.ask_reset),
            PageRoute("POST", f"{_ONE}/circuit", self.reset),
        ]

    async def show(self, asked: Asked) -> Answer:
        """Why, and what now?"""
        return await self._shown(asked)

    async def back(self, asked: Asked) -> Answer:
        """Where the results of a test stood: loading them again does not test again."""
        return GoTo(_page(asked))

    # --- what is done ---

    async def recover(self, asked: Asked) -> Answer:
        """Test past the circuit; if it accepts, offer to replay what died."""
        endpoint = await _endpoint(asked)
        return await self._shown(asked, tested=await recovery.recovered(asked.api, self._clock, endpoint))

    async def test(self, asked: Asked) -> Answer:
        """Send a test event, and wait for its answer."""
        endpoint = await _endpoint(asked)
        return await self._shown(asked, tested=await recovery.only_tested(asked.api, self._clock, endpoint))

    async def pause(self, asked: Asked) -> Answer:
        """Let everything wait."""
        return await self._done(asked, "pause", "Paused: what is published for it waits until it is resumed.")

    async def resume(self, asked: Asked) -> Answer:
        """Send again."""
        return await self._done(asked, "resume", "Resumed: what waited is being sent.")

    async def enable(self, asked: Asked) -> Answer:
        """Send again, new events too."""
        return await self._done(
            asked, "enable", "Enabled: it gets new events, and what waited is being sent."
        )

    async def ask_disable(self, asked: Asked) -> Answer:
        """Disable it?"""
        endpoint = await _endpoint(asked)
        return _asking(
            asked,
            endpoint,
            question="Disable this endpoint?",
            texts=[
                "It gets no events from now on: what is published meanwhile is never sent to it. "
                "To let events wait instead, pause it.",
                f"{words.counted(_waiting(endpoint), 'delivery waits', 'deliveries wait')} until it is enabled again."
                if _waiting(endpoint)
                else "Nothing waits for it now.",
            ],
            button="Disable",
            command=f"hookline endpoints disable {endpoint.id}",
        )

    async def disable(self, asked: Asked) -> Answer:
        """No new events; what waits goes on waiting."""
        return await self._done(asked, "disable", "Disabled: it gets no events until it is enabled.")

    async def ask_reset(self, asked: Asked) -> Answer:
        """Close the circuit without a test?"""
        endpoint = await _endpoint(asked)
        return _asking(
            asked,
            endpoint,
            question="Close the circuit without a test?",
            texts=[
                f"{words.counted(_waiting(endpoint), 'delivery that waits is', 'deliveries that wait are')} sent, one "
                "first, then more. Each that fails uses up one of its attempts; after some the circuit opens again.",
                "Test and recover does the same with a test event, and says what came of it.",
            ],
            button="Close the circuit",
            command=f"hookline endpoints reset-circuit {endpoint.id}",
        )

    async def reset(self, asked: Asked) -> Answer:
        """Send as if nothing had failed."""
        return await self._done(
            asked, "circuit/reset", "The circuit is closed: what waits is sent, one first."
        )

    async def _done(self, asked: Asked, verb: str, said: str) -> Answer:
        try:
            await asked.api.post(f"{_API}/{verb}", **asked.parts)
        except (Invalid, WrongState) as error:
            return GoTo(_page(asked), said=str(error), tone="bad")
        return GoTo(_page(asked), said=said)

    # --- what is shown ---

    async def live_parts(self, api: CallersApi, account: str | None, now: float, id: str) -> Parts:
        """The regions of the page that change by themselves."""
        return (await self._now(api, id)).parts

    async def _now(self, api: CallersApi, id: str, *, is_back: bool = False) -> _Now:
        endpoint: EndpointReport = await api.get(_API, endpoint_id=id)
        quarter, hour, day = [await _stats(api, id, window) for window in ("15m", "1h", "24h")]
        alerts = (
            await api.get("/v1/alerts", {"kind": "circuit_open", "endpoint_id": id, "limit": str(LATEST)})
        ).data
        firing = next((alert for alert in alerts if alert.state == "firing"), None)
        condition = facts.condition(
            endpoint, quarter=quarter, hour=hour, day=day, alert=firing, is_back=is_back
        )
        waiting = _waiting(endpoint)
        oldest = newest = None
        if waiting:
            for counts in await self._store.endpoint_counts([EndpointId(ids.read("endpoint", id))]):
                oldest = counts.oldest_pending
            query = {"endpoint_id": id, "state": "pending", "limit": "1"}
            newest = next(iter((await api.get("/v1/deliveries", query)).data), None)
        state = {
            "endpoint": endpoint,
            "condition": condition,
            "waiting": waiting,
            "day": day,
            "attempts_24h": sum(day.by_status.values()),
        }
        figures = {
            "endpoint": endpoint,
            "waiting": waiting,
            "waits_for": facts.waits_for(endpoint, None if newest is None else newest.waiting_for),
            "oldest": None if oldest is None else self._clock.shown(oldest),
            "hour": hour,
            "attempts_1h": sum(hour.by_status.values()),
            "day": day,
        }
        parts: Parts = {
            "state": ("parts/endpoint_state.html", state),
            "now": ("parts/endpoint_now.html", figures),
        }
        return _Now(endpoint, condition, parts, alerts)

    async def _shown(self, asked: Asked, *, tested: recovery.Tested | None = None) -> Shown:
        id = asked.parts["endpoint_id"]
        # The figures are seconds behind an answer that has just come.
        has_recovered = tested is not None and tested.died is not None
        found = await self._now(asked.api, id, is_back=has_recovered)
        endpoint, condition = found.endpoint, found.condition
        window = asked.query.get("window", "24h")
        if window not in WINDOWS:
            window = "24h"
        data: dict[str, Any] = {}
        for _, each in found.parts.values():
            data |= each
        data |= {
            "tested": tested,
            "window": window,
            "window_words": WINDOWS[window],
            "stats": await _read(self._stats(asked, window, since=condition.since)),
            "knots": facts.circuit_history(endpoint, found.alerts),
            "latest": await _read(
                asked.api.get(f"{_API}/deliveries", {"limit": str(LATEST)}, endpoint_id=id)
            ),
            "deaths": await _read(_deaths(asked.api, endpoint)) if endpoint.counts.dead else None,
            "settings": facts.settings(endpoint),
            "is_unread": lambda part: isinstance(part, Unread),
        }
        word = {"broken": "Unusable", "back": "Answers again"}.get(condition.state)
        word = word or words.ENDPOINT_STATES[condition.state].word
        return Shown(
            template="endpoint.html",
            title=f"{word}: {words.short_url(endpoint.url)}",
            data=data,
            nav="endpoints",
            live=f"endpoint:{id}",
        )

    async def _stats(self, asked: Asked, window: str, *, since: float | None) -> Mapping[str, Any]:
        stats = await _stats(asked.api, asked.parts["endpoint_id"], window)
        series = _Series(stats.series, stats.p50_ms, stats.p95_ms, stats.p99_ms, stats.samples)
        length = window_seconds(window)
        return {
            "of": stats,
            "plot": plotted(series, now=asked.now, window=length, what="Response time", since=since),
            "answers": facts.answers(stats),
            "phases": facts.phases(stats),
            "reused": facts.reused(stats),
        }


class _Series(NamedTuple):
    points: Sequence[Any]
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    samples: int


async def _stats(api: CallersApi, id: str, window: str) -> StatsReport:
    stats: StatsReport = await api.get(f"{_API}/stats", {"window": window}, endpoint_id=id)
    return stats


async def _deaths(api: CallersApi, endpoint: EndpointReport) -> Mapping[str, Any] | None:
    """What its dead letters of a day have in common; None: none died in it."""
    report = await api.get("/v1/dead-letters/analysis", {"endpoint_id": endpoint.id})
    for each in report.data:
        return {"of": each, "advice": with_commands(each.advice)}
    return None


async def _read(part: Awaitable[Any]) -> Any:
    try:
        return await part
    except NotFound:
        raise
    except HooklineError as error:
        return Unread(str(error))


async def _endpoint(asked: Asked) -> EndpointReport:
    endpoint: EndpointReport = await asked.api.get(_API, **asked.parts)
    return endpoint


def _waiting(endpoint: EndpointReport) -> int:
    return endpoint.counts.pending + endpoint.counts.awaiting_retry


def _page(asked: Asked) -> str:
    query = f"?{urlencode({'window': asked.query['window']})}" if "window" in asked.query else ""
    return f"/endpoints/{asked.parts['endpoint_id']}{query}"


def _asking(
    asked: Asked,
    endpoint: EndpointReport,
    *,
    question: str,
    texts: Sequence[str],
    button: str,
    command: str,
) -> Shown:
    return Shown(
        template="endpoint_ask.html",
        title=question,
        data={
            "endpoint": endpoint,
            "texts": texts,
            "button": button,
            "command": command,
            "action": asked.request.scope["path"],
        },
        nav="endpoints",
    )
