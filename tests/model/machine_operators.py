"""The steps that people can take.

Endpoints, single deliveries, bulk jobs and lists, on top of what publishers and workers do (`machine`).
"""

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hookline.ids import delivery_of
from hookline.model import Ordering, State
from hookline.store.contract import DeliveryFilter, Job, JobKind
from tests.model.machine import MASK, MOST_LANES, Machine, N, masked, pick, when


class OperatedMachine(Machine):
    """Publishers, workers and operators."""

    def goes_on(self) -> None:
        dead = [id for id, row in self.reference.deliveries.items() if row.state is State.DEAD]
        self.move_one("redrive", dead[0], wakes=False)

    # endpoints

    @when(lambda r: len(r.lanes) < MOST_LANES)
    @rule(account=st.sampled_from(["default", "acme"]), ordering=st.sampled_from(["parallel", "strict"]))
    def create_endpoint(self, account: str, ordering: str) -> None:
        self.add_endpoint(account, ordering)

    @when(lambda r: r.endpoints)
    @rule(n=N)
    def create_endpoint_again(self, n: int) -> None:
        endpoint = pick(list(self.reference.endpoints.values()), n)
        self.reference.create_endpoint(endpoint)
        self.driver.do("create_endpoint", endpoint, now=self.now, expected=None)

    @when(lambda r: r.endpoints)
    @rule(
        n=N,
        change=st.sampled_from(
            [{"paused": True}, {"paused": False}, {"enabled": False}, {"enabled": True}, {}]
        ),
        ordering=st.none() | st.sampled_from(list(Ordering)),
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def update_endpoint(self, n: int, change: dict[str, Any], ordering: Ordering | None, behind: int) -> None:
        found = pick(list(self.reference.endpoints.values()), n)
        changed = msgspec.structs.replace(
            found, **change, ordering=ordering or found.ordering, updated_at=self.now
        )
        was = found.updated_at - behind
        done = self.reference.update_endpoint(changed, was=was, now=self.now)
        self.driver.do("update_endpoint", changed, was=was, now=self.now, expected=done)

    @when(lambda r: r.lanes)
    @rule(n=N)
    def delete_endpoint(self, n: int) -> None:
        lane = pick(list(self.reference.lanes), n)
        done = self.reference.delete_endpoint(lane)
        self.driver.do("delete_endpoint", lane, now=self.now, expected=done)

    @rule(bite=st.integers(1, 3))
    def cancel_deleted(self, bite: int) -> None:
        """In parts, until nothing is left; all at once if several lanes would be handled in an undefined order."""
        if len({row.endpoint_id for row in self.reference.left_of_deleted()}) > 1:
            bite = 1_000
        more = True
        while more:
            count = self.reference.cancel_deleted(limit=bite, now=self.now)
            self.driver.do("cancel_deleted", limit=bite, now=self.now, expected=count)
            more = count > 0

    @when(lambda r: r.lanes)
    @rule(n=N)
    def reset_circuit(self, n: int) -> None:
        lane = pick(list(self.reference.lanes), n)
        done = self.reference.reset_circuit(lane, now=self.now)
        self.driver.do("reset_circuit", lane, now=self.now, expected=done)

    # deliveries

    @when(lambda r: r.deliveries)
    @rule(
        verb=st.sampled_from(["retry", "cancel", "redrive", "redrive", "discard"]), n=N, wakes=st.booleans()
    )
    def move(self, verb: str, n: int, wakes: bool) -> None:
        fitting = [
            id
            for id, row in self.reference.deliveries.items()
            if (row.state is State.PENDING) == (verb in ("retry", "cancel"))
        ]
        id = pick(fitting or list(self.reference.deliveries), n)
        self.move_one(verb, id, wakes=wakes)

    @rule(verb=st.sampled_from(["retry", "cancel", "redrive", "discard"]), n=N)
    def move_wrongly(self, verb: str, n: int) -> None:
        """Any delivery, or none at all."""
        unknown = delivery_of(self.makers[0].event(), 1)
        self.move_one(verb, pick([*self.reference.deliveries, unknown], n), wakes=True)

    def move_one(self, verb: str, id: Any, *, wakes: bool) -> None:
        lane = self.driver.expect(lambda: self.reference.move(verb, id, now=self.now))
        self.driver.do(verb, id, now=self.now, expected=lane)
        if lane in self.reference.lanes and verb in ("retry", "redrive"):
            self.owe([lane], wakes=wakes)

    @when(lambda r: r.events)
    @rule(
        n=N, states=st.sets(st.sampled_from(list(State)), min_size=1), lane=st.none() | N, wakes=st.booleans()
    )
    def redrive_event(self, n: int, states: set[State], lane: int | None, wakes: bool) -> None:
        event = pick(list(self.reference.events), n)
        asked = {
            "endpoint": None if lane is None else pick(list(self.reference.lanes), lane),
            "states": sorted(states),
            "now": self.now,
        }
        moved = self.reference.redrive_event(event, **asked)
        self.driver.do("redrive_event", event, **asked, expected=moved)
        self.owe(sorted({endpoint for _, endpoint in moved}), wakes=wakes)

    # jobs

    @when(lambda r: r.deliveries)
    @rule(
        kind=st.sampled_from(list(JobKind)),
        account=st.sampled_from([None, None, "acme"]),
        key=st.sampled_from([None, "k"]),
        lane=st.none() | N,
        ids=st.none() | MASK,
    )
    def create_job(
        self, kind: JobKind, account: str | None, key: str | None, lane: int | None, ids: int | None
    ) -> None:
        endpoint = None if lane is None else pick(list(self.reference.lanes), lane)
        job = Job(
            id=self.driver.name(self.makers[0].job(), "job"),
            kind=kind,
            filter=DeliveryFilter(endpoint_id=endpoint, account=account),
            ids=() if ids is None else tuple(masked(list(self.reference.deliveries), ids)),
            account=account,
            idempotency_key=key,
            created_at=self.now,
        )
        made = self.reference.create_job(job)
        self.driver.do("create_job", job, now=self.now, expected=made)

    @when(lambda r: r.jobs)
    @rule(n=N, limit=st.integers(1, 3), wakes=st.booleans())
    def advance_job(self, n: int, limit: int, wakes: bool) -> None:
        job = pick(list(self.reference.jobs)[::-1], n)
        step = self.reference.advance_job(job, limit=limit, now=self.now)
        self.driver.do("advance_job", job, limit=limit, now=self.now, expected=step)
        self.owe(list(step.lanes) if step else [], wakes=wakes)

    # reading

    @when(lambda r: r.lanes)
    @rule(
        state=st.none() | st.sampled_from(list(State)),
        account=st.sampled_from([None, "acme", "default"]),
        lane=st.none() | N,
        limit=st.integers(1, 4),
    )
    def list_deliveries(self, state: State | None, account: str | None, lane: int | None, limit: int) -> None:
        endpoint = None if lane is None else pick(list(self.reference.lanes), lane)
        filter = DeliveryFilter(state=state, account=account, endpoint_id=endpoint)
        rows = [row for row in self.reference.deliveries.values() if self.reference.matches(row, filter)]
        newest = sorted((row.id for row in rows), reverse=True)
        after = None if limit % 2 or not newest else newest[0]
        page = [id for id in newest if after is None or id < after][:limit]
        asked = {"after": after, "limit": limit}

        def seen(answer: list[Any]) -> list[Any]:
            return [delivery.id for delivery in answer]

        self.driver.do("list_deliveries", filter, **asked, expected=page, seen=seen)
        dead = len(self.reference.dead(msgspec.structs.replace(filter, state=None), before=float("inf")))
        self.driver.do("count_dead", filter, expected=dead)

    @when(lambda r: r.deliveries)
    @rule(n=N)
    def read_delivery(self, n: int) -> None:
        id = pick(list(self.reference.deliveries), n)
        row = self.reference.deliveries[id]
        found = (row.state, row.queue, row.attempts, row.replays, row.due_at, row.done_at, row.reason)
        self.driver.do(
            "delivery",
            id,
            expected=found,
            seen=lambda d: (d.state, d.queue, d.attempts, d.replays, d.due_at, d.done_at, d.reason),
        )
        tried = [
            msgspec.structs.replace(attempt, late=late)
            for attempt, late in self.reference.attempts.values()
            if attempt.delivery_id == id
        ]
        tried.sort(key=lambda attempt: (attempt.at, attempt.id))
        self.driver.do("attempts", id, expected=tried)

    @when(lambda r: r.workers)
    @rule(n=N)
    def owned(self, n: int) -> None:
        worker = self.worker(n)
        self.driver.do("owned", worker, expected=self.reference.owned(worker))
