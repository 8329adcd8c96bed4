"""Asks before dead letters are replayed or discarded in bulk, and starts the job."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.dead_letters.bulk_jobs import Kind
from hookline.dashboard.pages.dead_letters.dead_letter_choice import MOST_IDS, Choice, asked_for
from hookline.dashboard.pages.dead_letters.dead_letter_endpoints import accepted_at, endpoints_of
from hookline.dashboard.pages.dead_letters.death_groups import accepts_again
from hookline.errors import Invalid, NotFound

TYPED_FROM = 100  # a discard of more wants their number typed


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that they go to, and what will happen there now."""

    endpoint: Any | None  # None: deleted
    count: int | None  # None: unknown
    tone: str
    icon: str
    holds: bool  # they will not go out at once
    state: str
    seconds: float | None  # that a rate limit takes for them
    until: str | None = None  # when it is tried again


class ConfirmPages:
    """The pages that ask."""

    def __init__(self, hookline: Hookline) -> None:
        self._keeps_days = hookline.settings.keep_delivered_days

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [
            PageRoute("GET", "/dead-letters/replay", self.ask_replay),
            PageRoute("POST", "/dead-letters/replay", self.replay),
            PageRoute("GET", "/dead-letters/discard", self.ask_discard),
            PageRoute("POST", "/dead-letters/discard", self.discard),
        ]

    async def ask_replay(self, asked: Asked) -> Answer:
        """Replay these?"""
        return await self._ask(asked, "replay")

    async def ask_discard(self, asked: Asked) -> Answer:
        """Discard these?"""
        return await self._ask(asked, "discard")

    async def replay(self, asked: Asked) -> Answer:
        """Start to replay."""
        return await self._start(asked, "replay")

    async def discard(self, asked: Asked) -> Answer:
        """Start to discard."""
        return await self._start(asked, "discard")

    async def _ask(self, asked: Asked, kind: Kind) -> Answer:
        choice = asked_for(asked)
        if asked.query.get("selected") == "1" and not choice.ids:
            return GoTo(_back(choice), "Tick at least one dead letter first.", "warn")
        if choice.ids and "selected" in asked.query:
            choice = Choice(ids=choice.ids)  # the ticked ones alone, whatever the list was filtered by
        try:
            if len(choice.ids) > MOST_IDS:
                raise Invalid(f"At most {MOST_IDS} can be chosen one by one; use a filter for more.")
            return await self._question(asked, kind, choice)
        except (Invalid, NotFound) as error:
            return self._cannot(kind, str(error))

    async def _question(
        self, asked: Asked, kind: Kind, choice: Choice, *, problem: str = "", key: str = ""
    ) -> Answer:
        pinned = choice.pinned(asked.now)
        tried = await self._tried(asked, kind, pinned)
        goals = await self._goals(asked, choice, tried.matched)
        where = ""
        if len(goals) == 1 and goals[0].endpoint is not None:
            where = f" {'to' if kind == 'replay' else 'of'} {words.short_url(goals[0].endpoint.url)}"
        letters = words.counted(tried.matched, "dead letter")
        verb = kind.capitalize()
        title = f"{verb} {letters}{where}?" if tried.matched else f"Nothing to {kind}"
        return Shown(
            template="confirm_bulk.html",
            title=title,
            nav="dead",
            status=422 if problem else 200,
            data={
                "kind": kind,
                "verb": verb,
                "count": tried.matched,
                "missing": len(choice.ids) - tried.matched if choice.ids else 0,
                "goals": goals,
                "is_possible": kind == "discard" or not goals or any(each.endpoint for each in goals),
                "wants_number": kind == "discard" and tried.matched > TYPED_FROM,
                "choice": choice,
                "pinned": pinned,
                "limits": choice.said(),
                "command": choice.command(kind),
                "key": key or secrets.token_urlsafe(18),
                "back": _back(choice),
                "problem": problem,
                "keeps_days": self._keeps_days,
            },
        )

    async def _start(self, asked: Asked, kind: Kind) -> Answer:
        choice = asked_for(asked)
        key = asked.field("key")
        try:
            if not choice.ids and not choice.until:
                raise Invalid("This form is not complete. Go back to the list and choose again.")
            if len(choice.ids) > MOST_IDS:
                raise Invalid(f"At most {MOST_IDS} can be chosen one by one; use a filter for more.")
            if kind == "discard":
                n = (await self._tried(asked, kind, choice)).matched
                typed = asked.field("typed").replace(",", "").replace(" ", "")
                if n > TYPED_FROM and typed != str(n):
                    said = f"Type {n:,} to discard that many. Nothing was changed."
                    return await self._question(asked, kind, choice, problem=said, key=key)
            filter = choice.of_job(asked.now)
            job = await asked.api.post(f"/v1/{kind}s", {"filter": filter}, idempotency_key=key or None)
        except (Invalid, NotFound) as error:
            return self._cannot(kind, str(error))
        return GoTo(f"/{kind}s/{job.id}")

    def _cannot(self, kind: Kind, said: str) -> Answer:
        return Shown(
            template="problem_bulk.html",
            title=f"This {kind} cannot be started",
            nav="dead",
            status=422,
            data={"detail": said},
        )

    async def _tried(self, asked: Asked, kind: Kind, choice: Choice) -> Any:
        return await asked.api.post(f"/v1/{kind}s", {"filter": choice.of_job(asked.now), "dry_run": True})

    async def _goals(self, asked: Asked, choice: Choice, count: int) -> list[Goal]:
        """Where they go, and what is known of it. With a filter over several endpoints: those with the most."""
        counts: dict[str, int | None]
        died: dict[str, str] = {}  # when the last of them did
        if choice.ids:
            given = await asyncio.gather(
                *(asked.api.get("/v1/deliveries/{delivery_id}", delivery_id=id) for id in choice.ids)
            )
            found = [each for each in given if each.state == "dead"]
            counts = dict(Counter(each.endpoint_id for each in found))
            died = {
                each.endpoint_id: each.dead_at for each in sorted(found, key=lambda each: each.dead_at or "")
            }
        else:
            query = {"window": "90d", "account": choice.account, "endpoint_id": choice.endpoint_id}
            analysed = await asked.api.get("/v1/dead-letters/analysis", query)
            is_exact = not (choice.event_type or choice.reason or choice.since or choice.until)
            counts = {each.endpoint_id: each.count if is_exact else None for each in analysed.data}
            died = {each.endpoint_id: each.last_at for each in analysed.data}
            if choice.endpoint_id:
                counts = {choice.endpoint_id: count}
        endpoints = await endpoints_of(asked.api, list(counts))
        accepted = await accepted_at(asked.api, endpoints)
        accepting = {id for id, at in died.items() if accepts_again(endpoints.get(id), accepted.get(id), at)}
        return [
            _goal(endpoints.get(id), n, may_fail=id in died and id not in accepting)
            for id, n in counts.items()
        ]


def _goal(endpoint: Any | None, count: int | None, *, may_fail: bool) -> Goal:
    def goal(state: str, tone: str, icon: str, *, holds: bool = True, **more: Any) -> Goal:
        return Goal(
            endpoint=endpoint,
            count=count,
            state=state,
            tone=tone,
            icon=icon,
            holds=holds,
            **{"seconds": None, **more},
        )

    if endpoint is None:
        return goal("Deleted: nothing can be sent to it, so these are skipped.", "idle", "off")
    if not endpoint.enabled:
        return goal("Disabled: they wait until it is enabled.", "idle", "off")
    if endpoint.paused:
        return goal("Paused: they wait until it is resumed.", "idle", "pause")
    circuit = endpoint.circuit_state
    if circuit.state != "closed":
        said = "Its circuit is open: they wait until it answers."
        return goal(said, "bad", "open", until=circuit.next_probe_at)
    seconds = None
    if endpoint.rate_limit is not None and count is not None:
        seconds = max(0.0, count - endpoint.rate_limit.burst) / endpoint.rate_limit.per_second
    if may_fail:
        said = "It has accepted nothing since they died, so they may die again."
        return goal(said, "warn", "slow", holds=False, seconds=seconds)
    return goal("They go out now.", "ok", "ok", holds=False, seconds=seconds)


def _back(choice: Choice) -> str:
    if choice.ids and not choice.fields:
        return "/dead-letters"
    return msgspec.structs.replace(choice, ids=()).link()
