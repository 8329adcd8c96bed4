"""Shows bulk replays and discards: how far they are, and what became of what they replayed."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from hookline.api.inside import CallersApi
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown
from hookline.dashboard.pages.dead_letters.dead_letter_endpoints import endpoints_of
from hookline.errors import HooklineError, NotFound

RECENT_S = 300.0  # a finished job is shown among the running ones for so long
MOST_RECENT = 20  # jobs of each kind that are looked through for those
MOST_TOLD = 200  # deliveries that are read to tell what became of them
MOST_EXPLAINED = 5  # recent jobs of which it is told what became of their dead letters
_LISTED = 50

Kind = Literal["replay", "discard"]


class JobOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of replayed dead letters, as far as it is read."""

    died: int
    died_more: bool  # at least so many
    died_of: str  # the commonest answer
    died_href: str
    waiting: int
    waiting_more: bool
    waiting_href: str
    delivered: int | None  # None: unknown
    deliveries: Sequence[Any] = ()  # all of them, if they were chosen one by one


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it is shown."""

    kind: Kind
    report: Any  # JobReport
    endpoint: Any | None  # EndpointReport: the one that all of it goes to
    remaining: float | None  # seconds; None: unknown
    outcome: JobOutcome | None = None

    @property
    def id(self) -> str:
        return str(self.report.id)

    @property
    def href(self) -> str:
        return f"/{self.kind}s/{self.id}"

    @property
    def gone_through(self) -> int:
        return int(self.report.done) + int(self.report.failed)

    @property
    def to_go(self) -> int:
        return max(0, int(self.report.matched) - self.gone_through)

    @property
    def sentence(self) -> str:
        """What it does, or did."""
        report = self.report
        letters = words.counted(report.matched, "dead letter")
        if report.state == "running":
            return f"{'Replaying' if self.kind == 'replay' else 'Discarding'} {letters}"
        done = "Replayed" if self.kind == "replay" else "Discarded"
        if report.state == "failed":
            return f"The {self.kind} of {letters} failed after {report.done:,}"
        if report.done == report.matched:
            return f"{done} {letters}"
        return f"{done} {report.done:,} of {letters}"

    @property
    def tone(self) -> str:
        report = self.report
        if report.state == "failed":
            return "bad"
        if report.state == "running":
            return ""
        is_well = not report.failed and not (self.outcome and self.outcome.died)
        return "ok" if is_well else "warn"


class JobPages:
    """The pages of bulk jobs."""

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [
            PageRoute("GET", "/replays", self.list_jobs),
            PageRoute("GET", "/discards", self.list_discards),
            PageRoute("GET", "/replays/{replay_id}", self.show_replay),
            PageRoute("GET", "/discards/{discard_id}", self.show_discard),
        ]

    async def list_jobs(self, asked: Asked) -> Answer:
        """What was done in bulk?"""
        kinds: tuple[Kind, ...] = ("replay", "discard")
        if asked.query.get("kind") == "replay":
            kinds = ("replay",)
        return await self._listed(asked, kinds)

    async def list_discards(self, asked: Asked) -> Answer:
        """What was discarded in bulk?"""
        return await self._listed(asked, ("discard",))

    async def _listed(self, asked: Asked, kinds: tuple[Kind, ...]) -> Answer:
        views: list[JobView] = []
        more: list[tuple[str, str]] = []
        cursor = asked.query.get("cursor", "") if len(kinds) == 1 else ""
        for kind in kinds:
            page = await asked.api.get(f"/v1/{kind}s", {"limit": str(_LISTED), "cursor": cursor})
            views += await _views(asked.api, kind, page.data, now=asked.now)
            if page.next_cursor:
                path = "/replays?kind=replay&" if kind == "replay" else "/discards?"
                more.append((f"Older {kind}s", path + urlencode({"cursor": page.next_cursor})))
        views.sort(key=lambda each: str(each.report.created_at), reverse=True)
        running = sum(each.report.state == "running" for each in views)
        noun = "bulk discard" if kinds == ("discard",) else "bulk replay" if len(kinds) == 1 else "bulk job"
        title = f"{words.counted(running, noun)} running" if running else f"No {noun} is running"
        return Shown(
            template="jobs.html", title=title, nav="dead", data={"jobs": views, "more": more, "kinds": kinds}
        )

    async def show_replay(self, asked: Asked) -> Answer:
        """How far is a replay, and what became of it?"""
        return await self._show(asked, "replay", asked.parts["replay_id"])

    async def show_discard(self, asked: Asked) -> Answer:
        """How far is a discard?"""
        return await self._show(asked, "discard", asked.parts["discard_id"])

    async def _show(self, asked: Asked, kind: Kind, id: str) -> Answer:
        report = await asked.api.get(f"/v1/{kind}s/{{{kind}_id}}", **{f"{kind}_id": id})
        (job,) = await _views(asked.api, kind, [report], now=asked.now)
        return Shown(
            template="job.html",
            title=job.sentence,
            nav="dead",
            live="dead",
            data={
                "job": job,
                "outcome": await outcome(asked.api, job),
                "filter": _filter_words(report.filter),
            },
        )


async def recent(api: CallersApi, *, now: float) -> list[JobView]:
    """The jobs that run, and those that ended in the last minutes; newest first."""
    kinds: tuple[Kind, ...] = ("replay", "discard")
    pages = await asyncio.gather(*(api.get(f"/v1/{kind}s", {"limit": str(MOST_RECENT)}) for kind in kinds))
    views: list[JobView] = []
    for kind, page in zip(kinds, pages, strict=True):
        fresh = [each for each in page.data if each.state == "running" or _age(each, now) < RECENT_S]
        views += await _views(api, kind, fresh, now=now)
    views.sort(key=lambda each: str(each.report.created_at), reverse=True)
    told = await asyncio.gather(*(outcome(api, each) for each in views[:MOST_EXPLAINED]))
    explained = [msgspec.structs.replace(view, outcome=each) for view, each in zip(views, told, strict=False)]
    return explained + views[MOST_EXPLAINED:]


async def outcome(api: CallersApi, job: JobView) -> JobOutcome | None:
    """What became of what a job replayed; None if that cannot be told."""
    if job.kind != "replay" or not job.report.done:
        return None
    try:
        ids = job.report.filter.get("ids")
        return await (_of_ids(api, ids, job.href) if ids else _of_filter(api, job))
    except HooklineError:
        return None


async def _of_ids(api: CallersApi, ids: Sequence[str], href: str) -> JobOutcome | None:
    if len(ids) > MOST_TOLD:
        return None

    async def one(id: str) -> Any:
        try:
            return await api.get("/v1/deliveries/{delivery_id}", delivery_id=id)
        except NotFound:
            return None

    found = [each for each in await asyncio.gather(*(one(id) for id in ids)) if each is not None]
    died = [each for each in found if each.state == "dead" and each.replays]
    waiting = [each for each in found if each.state == "pending"]
    return JobOutcome(
        died=len(died),
        died_more=False,
        died_of=_commonest(died),
        died_href=f"{href}#deliveries",
        waiting=len(waiting),
        waiting_more=False,
        waiting_href=f"{href}#deliveries",
        delivered=sum(each.state == "delivered" for each in found),
        deliveries=found,
    )


async def _of_filter(api: CallersApi, job: JobView) -> JobOutcome:
    """Those that died again since it began; who died for the first time meanwhile does not count."""
    names = ("endpoint_id", "account", "event_type")
    same = {name: job.report.filter[name] for name in names if job.report.filter.get(name)}
    since = {**same, "since": job.report.created_at}
    replayed = {**same, "replayed": "true"}
    limit = {"limit": str(MOST_TOLD)}
    dead, pending = await asyncio.gather(
        api.get("/v1/dead-letters", {**since, **limit}), api.get("/v1/dead-letters", {**replayed, **limit})
    )
    died = [each for each in dead.data if each.replays]
    return JobOutcome(
        died=len(died),
        died_more=dead.next_cursor is not None,
        died_of=_commonest(died),
        died_href=f"/dead-letters?{urlencode(since)}",
        waiting=len(pending.data),
        waiting_more=pending.next_cursor is not None,
        waiting_href=f"/dead-letters?{urlencode(replayed)}",
        delivered=None,
    )


def _commonest(deliveries: Sequence[Any]) -> str:
    answers = Counter(
        words.answer(each.last_status, each.last_error.kind if each.last_error else None)
        for each in deliveries
    )
    return answers.most_common(1)[0][0] if answers else ""


async def _views(api: CallersApi, kind: Kind, reports: Sequence[Any], *, now: float) -> list[JobView]:
    found = await endpoints_of(api, [id for each in reports if (id := each.filter.get("endpoint_id"))])
    return [
        JobView(
            kind=kind,
            report=each,
            endpoint=found.get(each.filter.get("endpoint_id") or ""),
            remaining=_remaining(each, now),
        )
        for each in reports
    ]


def _remaining(report: Any, now: float) -> float | None:
    """As long as the rest takes if it goes on like this."""
    began = words.moment(report.created_at)
    through = report.done + report.failed
    if report.state != "running" or not through or began is None or now - began < 1.0:
        return None
    return float((report.matched - through) * (now - began) / through)


def _age(report: Any, now: float) -> float:
    ended = words.moment(report.finished_at)
    return 0.0 if ended is None else now - ended


def _filter_words(filter: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a job was told to take."""
    names = {
        "endpoint_id": "Endpoint",
        "account": "Account",
        "event_type": "Event type",
        "reason": "Reason",
        "since": "Died since",
        "until": "Died before",
    }
    shown = []
    for name, label in names.items():
        value = filter.get(name)
        if not value:
            continue
        if name in ("since", "until") and (at := words.moment(value)) is not None:
            value = words.exact(at)
        shown.append((label, words.REASONS.get(value, value) if name == "reason" else str(value)))
    if filter.get("ids"):
        shown.append(("Chosen", words.counted(len(filter["ids"]), "delivery", "deliveries")))
    return shown
