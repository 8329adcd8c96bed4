"""Shows what was given up: by endpoint with a diagnosis each, or as a list."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from hookline import rfc3339
from hookline.api.inside import CallersApi
from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.dead_letters import bulk_jobs
from hookline.dashboard.pages.dead_letters.dead_letter_choice import (
    WINDOWS,
    Choice,
    asked_for,
    endpoint_named,
)
from hookline.dashboard.pages.dead_letters.dead_letter_endpoints import accepted_at, endpoints_of
from hookline.dashboard.pages.dead_letters.death_groups import Group, group
from hookline.errors import HooklineError, Invalid, NotFound
from hookline.ids import PREFIXES
from hookline.model import Reason
from hookline.reports.counts import RememberedByKey
from hookline.store.contract import JobKind
from hookline.validate.dead_letter_filter import chosen
from hookline.validate.windows import window_seconds

ROWS = 25
MOST_COUNTED = 12_000  # more than these are not counted by reason: a page is to be fast
REASONS = (Reason.EXHAUSTED, Reason.REJECTED, Reason.GONE, Reason.CRASH_LIMIT)
_FIRST_WORDS = 90  # characters of an answer in a list
_GROUP_WINDOWS = ("24h", "7d", "30d", "90d")
MOST_REMEMBERED = 100  # accounts whose counts are live
COUNTING_SHARE = 100.0  # open pages are counted for at most a hundredth of the time
_MOST_ENDPOINTS = 20  # that an analysis tells of


class Row(msgspec.Struct, frozen=True):
    """A dead letter in a list."""

    delivery: Any
    endpoint: Any | None
    answer: str
    said: str  # the first words of the last answer


class DeadList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of dead letters, and what can be done with all of them."""

    choice: Choice
    rows: Sequence[Row]
    total: int | None  # of all that match; None: unknown
    of_one: bool  # they all go to one endpoint
    next_href: str = ""
    first_href: str = ""


class DeadLetterPages:
    """The pages of dead letters."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline
        self.live = {"dead": self.live_parts}
        self._live_counts: RememberedByKey[str | None, dict[str, int]] = RememberedByKey(
            hookline.clock, self.counts, most=MOST_REMEMBERED, good_for=2.0, good_for_times=COUNTING_SHARE
        )

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [PageRoute("GET", "/dead-letters", self.show)]

    async def show(self, asked: Asked) -> Answer:
        """What was given up, can it go back?"""
        if job := asked.query.get("job", ""):
            return GoTo(
                f"/{'discards' if job.startswith(PREFIXES['discard']) else 'replays'}/{quote(job, safe='')}"
            )
        choice = asked_for(asked)
        choice = msgspec.structs.replace(choice, ids=())
        try:
            if choice.endpoint_id:
                found = await endpoint_named(asked.api, choice.endpoint_id)
                if found != choice.endpoint_id:
                    return GoTo(choice.link(endpoint_id=found))
            if choice.is_any or asked.query.get("view") == "list" or asked.query.get("cursor"):
                return await self._list(asked, choice)
        except (Invalid, NotFound) as error:
            return await self._refused(asked, choice, error)
        return await self._groups(asked)

    # --- by endpoint ---

    async def _groups(self, asked: Asked) -> Answer:
        window = asked.query.get("window", "7d")
        if window not in _GROUP_WINDOWS:
            window = "7d"
        account = asked.visitor.account
        counts, analysed, jobs = await asyncio.gather(
            self.counts(account),
            asked.api.get("/v1/dead-letters/analysis", {"window": window}),
            bulk_jobs.recent(asked.api, now=asked.now),
        )
        opened = asked.query.get("open", "")
        endpoints = await endpoints_of(asked.api, [each.endpoint_id for each in analysed.data])
        accepted = await accepted_at(asked.api, endpoints)
        groups = [
            group(
                each,
                endpoints.get(each.endpoint_id),
                accepted.get(each.endpoint_id),
                window=window,
                is_open=each.endpoint_id == opened,
            )
            for each in analysed.data
        ]
        listing = None
        if any(each.deaths.endpoint_id == opened for each in groups):
            listing = await self._listing(asked, Choice(endpoint_id=opened, since=window))
        covered = sum(each.count for each in analysed.data)
        total = max(counts["all"], covered)
        is_whole = covered >= total and len(groups) < _MOST_ENDPOINTS
        begins = rfc3339.show(asked.now - window_seconds(window))
        older = total - covered if len(groups) < _MOST_ENDPOINTS else 0
        title = f"{words.counted(total, 'dead letter')}" if total else "No dead letters"
        if groups and is_whole:
            title += f" at {words.counted(len(groups), 'endpoint')}"
        return Shown(
            template="dead_letters.html",
            title=title,
            nav="dead",
            live="dead",
            data={
                **self._frame(asked, Choice(), counts),
                "jobs": jobs,
                "total": total,
                "groups": groups,
                "sub": _sub(groups),
                "window": window,
                "windows": _GROUP_WINDOWS,
                "opened": opened,
                "listing": listing,
                "older": max(0, older),
                "older_href": Choice(until=begins).link(),
                "is_cut": len(groups) >= _MOST_ENDPOINTS,
                "keeps_days": self._hookline.settings.keep_dead_days,
            },
        )

    async def counts(self, account: str | None) -> dict[str, int]:
        """How many there are: of all of them, and by reason if that is quick."""
        report = await self._hookline.health.report(account)
        if report.dead > MOST_COUNTED:
            return {"all": report.dead}
        until = {"until": rfc3339.show(self._now() + 60.0)}
        found = await asyncio.gather(
            self.count(until, account), *(self.count({"reason": each.value}, account) for each in REASONS)
        )
        return {"all": found[0], **{each.value: n for each, n in zip(REASONS, found[1:], strict=True)}}

    async def count(self, filter: Mapping[str, Any], account: str | None) -> int:
        """How many dead letters match; a dry run of a job tells that only to who may start one."""
        which = chosen(filter)
        if account is not None:
            which = which.within(account)
        return (await self._hookline.dead_letters.try_job(JobKind.REPLAY, which, account=account)).matched

    def _now(self) -> float:
        clock = self._hookline.clock
        return clock.shown(clock.now())

    # --- as a list ---

    async def _list(self, asked: Asked, choice: Choice) -> Answer:
        account = asked.visitor.account
        listing, counts = await asyncio.gather(self._listing(asked, choice), self.counts(account))
        found = None
        if choice.endpoint_id:
            window = choice.window or "90d"
            query = {"window": window, "endpoint_id": choice.endpoint_id}
            analysed = await asked.api.get("/v1/dead-letters/analysis", query)
            endpoints = await endpoints_of(asked.api, [choice.endpoint_id])
            endpoint = endpoints.get(choice.endpoint_id)
            if analysed.data:
                accepted = await accepted_at(asked.api, endpoints)
                found = group(analysed.data[0], endpoint, accepted.get(choice.endpoint_id), window=window)
            gone = "a deleted endpoint" if listing.total else "this endpoint"
            name = words.short_url(endpoint.url) if endpoint else gone
        noun = "replayed delivery" if choice.is_replayed else "dead letter"
        many = "replayed deliveries" if choice.is_replayed else None
        if listing.total is None:
            n, more = len(listing.rows), bool(listing.next_href)
            title = f"The newest {words.counted(n, noun, many)}" if more else words.counted(n, noun, many)
        else:
            title = words.counted(listing.total, noun, many)
        if not listing.rows and not listing.total:
            title = f"No {many or 'dead letters'}"
        if choice.endpoint_id:
            title += f" of {name}"
        elif choice.is_any and not choice.is_replayed:
            title += " match" if listing.total != 1 else " matches"
        if choice.is_replayed:
            title += ", not yet delivered"
        return Shown(
            template="dead_list.html",
            title=title,
            nav="dead",
            data={
                **self._frame(asked, choice, counts if choice.fields.keys() <= {"reason"} else {}),
                "listing": listing,
                "found": found,
                "wider": choice.link(since="") if choice.since else "",
            },
        )

    async def _listing(self, asked: Asked, choice: Choice) -> DeadList:
        # A cursor is good for one filter only: from the first page on, a window begins at the same moment.
        wanted = choice.wanted(asked.now)
        query = {**wanted, "limit": str(ROWS), "cursor": asked.query.get("cursor", "")}
        if choice.is_replayed:
            query["replayed"] = "true"
        page = await asked.api.get("/v1/dead-letters", query)
        total = None
        if not choice.is_replayed:
            filter = wanted or {"until": rfc3339.show(asked.now + 60.0)}
            total = await self.count(filter, asked.visitor.account)
        fixed = msgspec.structs.replace(choice, since=wanted.get("since", ""))
        more = {} if fixed.is_any else {"view": "list"}
        return DeadList(
            choice=choice,
            rows=await _rows(asked.api, page.data),
            total=total,
            of_one=bool(choice.endpoint_id),
            next_href=fixed.link(cursor=page.next_cursor, **more) if page.next_cursor else "",
            first_href=choice.link(**more) if asked.query.get("cursor") else "",
        )

    async def _refused(self, asked: Asked, choice: Choice, error: HooklineError) -> Answer:
        """The filter again, with what is wrong with it."""
        pointer = error.pointer.removeprefix("/") if isinstance(error, Invalid) else "endpoint_id"
        frame = self._frame(asked, choice, {})
        frame["problem"], frame["pointer"] = str(error), pointer
        return Shown(
            template="dead_list.html",
            title="These dead letters cannot be listed",
            nav="dead",
            status=422,
            data={**frame, "listing": None, "found": None, "wider": ""},
        )

    def _frame(self, asked: Asked, choice: Choice, counts: Mapping[str, int]) -> dict[str, Any]:
        """What chips and the filter need."""
        return {
            "choice": choice,
            "counts": counts,
            "reasons": [(each.value, words.REASONS[each.value]) for each in REASONS],
            "spans": WINDOWS,
            "problem": None,
            "pointer": "",
        }

    # --- live ---

    async def live_parts(
        self, api: CallersApi, account: str | None, now: float
    ) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """The counts, and the jobs under way."""
        counts = (await self._live_counts.of(account).get()).value
        parts: dict[str, tuple[str, Mapping[str, Any]]] = {
            f"n-{name}": ("parts/dead_count.html", {"n": n}) for name, n in counts.items()
        }
        parts["tally"] = ("parts/dead_count.html", {"n": counts["all"] or None})
        jobs = await bulk_jobs.recent(api, now=now)
        parts["jobs"] = ("parts/dead_jobs.html", {"jobs": jobs})
        parts |= {
            f"job-{each.id}": ("parts/dead_job.html", {"job": each, "outcome": each.outcome}) for each in jobs
        }
        return parts


async def _rows(api: CallersApi, deliveries: Sequence[Any]) -> list[Row]:
    async def said(delivery: Any) -> str:
        try:
            page = await api.get(
                "/v1/deliveries/{delivery_id}/attempts", {"limit": "1"}, delivery_id=delivery.id
            )
        except NotFound:
            return ""  # pruned meanwhile
        body = page.data[0].response_body[: 4 * _FIRST_WORDS] if page.data else ""
        text = " ".join(body.split())
        return text if len(text) <= _FIRST_WORDS else f"{text[: _FIRST_WORDS - 1]}…"

    endpoints, texts = await asyncio.gather(
        endpoints_of(api, [each.endpoint_id for each in deliveries]),
        asyncio.gather(*(said(each) for each in deliveries)),
    )
    return [
        Row(
            delivery=each,
            endpoint=endpoints.get(each.endpoint_id),
            answer=words.answer(each.last_status, each.last_error.kind if each.last_error else None),
            said=text,
        )
        for each, text in zip(deliveries, texts, strict=True)
    ]


def _sub(groups: Sequence[Group]) -> str:
    """How many can go back now, and what keeps the others."""
    ready = [each for each in groups if each.can_go]
    refused = [each for each in groups if each.deaths.pattern == "credentials" and not each.is_over]
    said = []
    if ready:
        n = sum(each.deaths.count for each in ready)
        whose = "their receiver accepts" if len(ready) == 1 else "their receivers accept"
        said.append(f"{n:,} can go back now: {whose} again.")
    if refused:
        n = sum(each.deaths.count for each in refused)
        said.append(f"{n:,} {'needs' if n == 1 else 'need'} new credentials first.")
    return " ".join(said)
