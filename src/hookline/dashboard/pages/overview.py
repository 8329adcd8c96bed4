"""Shows whether all is well, what is not, and what flows."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from hookline.api.inside import CallersApi
from hookline.app import Hookline
from hookline.dashboard.look import figures, words
from hookline.dashboard.look.figures import Bar, Line
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown
from hookline.errors import HooklineError
from hookline.rules.death_pattern import Pattern
from hookline.rules.failure_cause import ANSWERS_AGAIN
from hookline.validate.windows import window_seconds

WINDOWS = ("1h", "24h", "7d")
FEW_POINTS = 3  # of a day's 24

Parts = dict[str, tuple[str, Mapping[str, Any]]]


class OverviewPages:
    """The first page, and what is live on it."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline
        self._settings = hookline.settings
        self.live = {"overview": self.live_parts}

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [PageRoute("GET", "/", self.show), PageRoute("GET", "/keyboard", self.keyboard)]

    async def show(self, asked: Asked) -> Answer:
        """Is all well?"""
        window = asked.query.get("window", "")
        parts = await self.live_parts(asked.api, asked.visitor.account, asked.now)
        status = parts["verdict"][1]["status"]
        data: dict[str, Any] = {"is_new": status.level == "new"}
        for _, each in parts.values():
            data |= each
        data["window"], data["end_to_end"] = await self._end_to_end(asked, window)
        data["server"] = self._server(asked)
        return Shown(
            template="overview.html",
            title=data["headline"],
            data=data,
            nav="overview",
            live="overview",
        )

    async def keyboard(self, asked: Asked) -> Answer:
        """The keys."""
        return Shown(template="keyboard.html", title="Keys", data={})

    async def live_parts(self, api: CallersApi, account: str | None, now: float) -> Parts:
        """The regions of the page that change by themselves."""
        status = await api.get("/v1/status")
        flow = None
        try:
            flow = await self._hookline.flow.now(account)
        except HooklineError:
            if status.health is not None:
                raise
        headline, sub = _headline(status, flow, account=account)
        verdict = {"status": status, "headline": headline, "sub": sub, "troubles": _troubles(status)}
        known = {each.endpoint_id for trouble in status.troubles for each in trouble.endpoints}
        alerts = [each for each in status.alerts if each.endpoint_id not in known]
        parts: Parts = {
            "verdict": ("parts/verdict.html", verdict),
            "flow": ("parts/flow.html", {"flow": flow, "health": status.health, "sparks": _sparks(flow)}),
            "stands": ("parts/stands.html", {"health": status.health, "stand": status}),
            "tally": ("parts/dead_count.html", {"n": status.health.dead or None if status.health else None}),
            "alerts": (
                "parts/alerts.html",
                {
                    "alerts": alerts,
                    "folded": len(status.alerts) - len(alerts),
                    "urls": await self._urls(api, alerts),
                },
            ),
        }
        if status.workers is not None:
            living = [each for each in status.workers if each.state != "stale" or each.lanes]
            parts["workers"] = ("parts/workers.html", {"workers": living})
        return parts

    async def _urls(self, api: CallersApi, alerts: Sequence[Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for id in {each.endpoint_id for each in alerts if each.endpoint_id is not None}:
            try:
                found[id] = (await api.get("/v1/endpoints/{endpoint_id}", endpoint_id=id)).url
            except HooklineError:
                continue  # deleted meanwhile
        return found

    async def _end_to_end(self, asked: Asked, window: str) -> tuple[str, Mapping[str, Any] | None]:
        """The plot of a window; of an installation that began just now the last hour, unless another was asked for."""
        chosen = window if window in WINDOWS else "24h"
        try:
            series = await self._hookline.flow.end_to_end(
                asked.visitor.account, window=window_seconds(chosen)
            )
            if chosen != window and len(series.points) < FEW_POINTS:
                chosen = "1h"
                series = await self._hookline.flow.end_to_end(
                    asked.visitor.account, window=window_seconds(chosen)
                )
        except HooklineError:
            return chosen, None
        return chosen, plotted(series, now=asked.now, window=window_seconds(chosen), what="End-to-end time")

    def _server(self, asked: Asked) -> Mapping[str, Any]:
        host = asked.request.headers.get("host", "")
        return {
            "is_development": self._settings.dev,
            "database": self._settings.database
            if self._settings.database.startswith("sqlite")
            else "PostgreSQL",
            "address": f"{asked.request.url.scheme}://{host}",
        }


def plotted(
    series: Any, *, now: float, window: float, what: str, since: float | None = None
) -> Mapping[str, Any]:
    """A series of percentiles as a plot, its key and its table."""
    places, kept, times = [], [], []
    for point in series.points:
        at = words.moment(point.at)
        if at is not None:
            places.append(min(1.0, max(0.0, (at - (now - window)) / window)))
            kept.append(point)
            times.append(at)
    lines = [Line(f"p{n}", [getattr(point, f"p{n}_ms") for point in kept]) for n in (99, 95, 50)]
    title = (
        f"{what} over {words.about(window)}: p50 {words.milliseconds(series.p50_ms)}, "
        f"p95 {words.milliseconds(series.p95_ms)}, p99 {words.milliseconds(series.p99_ms)}."
    )
    trouble = None if since is None else ((since - (now - window)) / window, 1.0)
    ticks = [words.clock_time(now - window * share, now=now) for share in (1.0, 0.75, 0.5, 0.25)]
    return {
        "drawing": figures.plot(lines, places, title, trouble=trouble),
        "key": [(f"p{n}", words.milliseconds(getattr(series, f"p{n}_ms"))) for n in (99, 95, 50)],
        "ticks": [*ticks, "now"],
        "data": _plot_data(lines, times, now=now, window=window, since=since),
        "points": list(reversed(kept))[:48],
        "samples": series.samples,
    }


def _plot_data(
    lines: Sequence[Line], times: Sequence[float], *, now: float, window: float, since: float | None
) -> str:
    """The same for the script that draws it (see plots.js): seconds since 1970, and milliseconds."""
    drawn = {line.name: [value or None for value in line.values] for line in lines}  # 0 has no logarithm
    given = {"from": now - window, "to": now, "since": since, "times": times, "lines": drawn}
    return msgspec.json.encode(given).decode()


def _sparks(flow: Any) -> Mapping[str, Any]:
    if flow is None or not flow.minutes:
        return {}
    return {
        "delivered": figures.spark(
            [Bar(each.accepted) for each in flow.minutes], "Accepted attempts of each minute of the last hour"
        ),
        "failed": figures.spark(
            [Bar(each.attempts - each.accepted) for each in flow.minutes],
            "Failed attempts of each minute of the last hour",
            are_failures=True,
        ),
    }


def _headline(status: Any, flow: Any, *, account: str | None) -> tuple[str, str]:
    """The sentence, and a second one with the figures behind it."""
    headline = status.headline
    health = status.health
    if health is None:
        return headline, "Publishes are refused with 503 until it answers, so that senders try again."
    if status.level == "new":
        if account is not None:
            return headline, "Say where your webhooks go; this page shows them as they arrive."
        return (
            "hookline is running. Nothing has been published yet.",
            "The database answers. The steps below bring the first webhook; this page shows it as it arrives.",
        )
    said = []
    if health.delivery_rate is not None:
        said.append(f"{words.percent(health.delivery_rate)} % of the attempts of the last hour were accepted")
    if health.end_to_end_ms.p95 is not None:
        said.append(f"95 % of what was delivered took up to {words.milliseconds(health.end_to_end_ms.p95)}")
    text = ", ".join(said)
    text = f"{text[:1].upper()}{text[1:]}. " if text else ""
    if status.level == "bad":
        text += "Nothing is lost: what cannot be sent now waits"
        text += ", or is kept as a dead letter." if health.dead else "."
    elif not health.dead and not health.awaiting_retry:
        text += "Nothing is late, and no dead letters are left."
    return headline, text


def _troubles(status: Any) -> list[Mapping[str, Any]]:
    """The knots: what fails, in a sentence, with the one thing to press first."""
    found: list[Mapping[str, Any]] = []
    for trouble in status.troubles:
        worst = trouble.endpoints[0]
        is_host = len(trouble.endpoints) > 1
        of_host = f"/endpoints?state=failing&q={quote(trouble.name, safe='')}"
        found.append(
            {
                "name": trouble.name,
                "sentence": trouble.sentence,
                "endpoint": worst,
                "is_gone": not worst.enabled,
                "href": of_host if is_host else f"/endpoints/{worst.endpoint_id}",
                "waiting": sum(each.waiting for each in trouble.endpoints),
                "dead": sum(each.dead for each in trouble.endpoints),
                "primary": {"href": of_host, "label": "See which", "symbol": ""}
                if is_host
                else _primary(worst),
                "is_host": is_host,
            }
        )
    return found


def _primary(endpoint: Any) -> Mapping[str, str]:
    page = f"/endpoints/{endpoint.endpoint_id}"
    if not endpoint.enabled:
        dead = f"/dead-letters?endpoint_id={endpoint.endpoint_id}"
        waiting = f"/deliveries?state=pending&endpoint_id={endpoint.endpoint_id}"
        href, label = (dead, "List what died") if endpoint.dead else (waiting, "List what waits")
        return {"href": href, "label": label, "symbol": ""}
    if endpoint.pattern == Pattern.CREDENTIALS:
        return {"href": f"{page}/settings#headers", "label": "Change the header", "symbol": "edit"}
    if endpoint.pattern == Pattern.THROTTLED:
        return {"href": f"{page}/settings#rate", "label": "Set a rate limit", "symbol": "edit"}
    if endpoint.cause == ANSWERS_AGAIN and endpoint.dead:
        href = f"/dead-letters/replay?endpoint_id={endpoint.endpoint_id}"
        return {"href": href, "label": f"Replay {endpoint.dead:,}…", "symbol": "replay"}
    if endpoint.pattern == Pattern.REJECTED:
        href = f"/dead-letters?endpoint_id={endpoint.endpoint_id}"
        return {"href": href, "label": "List what it refused", "symbol": ""}
    return {"href": f"{page}#recover", "label": "Test and recover", "symbol": "probe"}
