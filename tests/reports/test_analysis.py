"""What the dead letters of a window have in common, for each endpoint, on both stores."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from factories import a_publication, a_settlement, an_attempt
from hookline import ids, rfc3339
from hookline.ids import delivery_of
from hookline.model import (
    CircuitPolicy,
    EndpointId,
    ErrorKind,
    Outcome,
    RateLimit,
    Reason,
    State,
)
from hookline.reports import analysis
from hookline.reports.analysis import DeathAnalysis, WorstEndpoints
from hookline.reports.owners import LaneOwners
from hookline.reports.queries import Reports
from hookline.reports.views import DeathsReport
from hookline.store.contract import Store, Taken, Verdict
from hookline.store.contract.measuring.deaths import DeathCount
from hookline.store.postgres.measuring import deaths as postgres_deaths
from hookline.store.sqlite.measuring import deaths as sqlite_deaths
from hookline.testing import ManualClock
from scenes import accepted, an_owned_lane

pytestmark = pytest.mark.anyio

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0


class NoOwner:
    """No lane is owned here."""

    def owns(self, endpoint: Any) -> bool:
        return False

    def is_under_way(self, delivery: Any) -> bool:
        return False

    def circuit_of(self, endpoint: Any) -> None:
        return None

    def waiting_reason(self, endpoint: Any) -> None:
        return None

    def in_flight(self, endpoint: Any) -> int:
        return 0


class History:
    """A store with dead letters that died some time ago."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = ManualClock()
        owners = LaneOwners(store, NoOwner(), self.clock, heartbeat=2.0)
        reports = Reports(store, owners, shown=self.clock.shown)
        self.analysis = DeathAnalysis(store, reports, self.clock)

    async def endpoint(self, *deaths: tuple[Sequence[float], int | ErrorKind], **fields: Any) -> EndpointId:
        """An endpoint with letters that died these seconds ago, of a status or an error."""
        worker, lane = await an_owned_lane(self.store, **fields)
        account = fields.get("account", "default")
        for ages, answer in deaths:
            await self._die(worker, lane, ages, answer, account=account)
        return lane.endpoint_id

    async def _die(
        self, worker: Any, lane: Taken, ages: Iterable[float], answer: Any, *, account: str
    ) -> None:
        status, error = (None, answer) if isinstance(answer, ErrorKind) else (answer, _kind(answer))
        reason = Reason.EXHAUSTED
        if status is not None and status < 500 and status != 429:
            reason = Reason.GONE if status == 410 else Reason.REJECTED
        for age in ages:
            at = self.clock.now() - age
            publication = a_publication(lane.endpoint_id, account=account)
            await accepted(self.store, publication)
            delivery = delivery_of(publication.event.id, 0)
            settlement = a_settlement(
                delivery,
                lane.endpoint_id,
                epoch=lane.epoch,
                attempt=an_attempt(delivery, outcome=Outcome.TRANSIENT, status=status, error=error, at=at),
                state=State.DEAD,
                reason=reason,
            )
            assert await self.store.settle(worker, [settlement], now=at) == [Verdict.APPLIED]

    async def found(self, window: str = "24h", **asked: Any) -> list[DeathsReport]:
        report = await self.analysis.of(window, **asked)
        assert report.window == window
        return report.data


def _kind(status: int) -> ErrorKind:
    match status:
        case 410:
            return ErrorKind.HTTP_410
        case 429:
            return ErrorKind.HTTP_429
    return ErrorKind.HTTP_5XX if status >= 500 else ErrorKind.HTTP_4XX


@pytest.fixture
def history(store: Store) -> History:
    return History(store)


def over(seconds: float, number: int) -> list[float]:
    """So many ages, spread over so many seconds, the last an hour ago."""
    return [HOUR + seconds * place / max(number - 1, 1) for place in range(number)]


SEEDED = {
    "outage": [(over(HOUR, 50), 503)],
    "credentials": [(over(5 * HOUR, 30), 401)],
    "throttled": [(over(HOUR, 30), 429)],
    "intermittent": [([day * DAY + hour * HOUR for day in range(7) for hour in (2, 9)], 503)],
    "rejected": [(over(HOUR, 20), 422)],
    "gone": [([HOUR], 410)],
    "mixed": [(over(HOUR, 20), 401), (over(HOUR, 20), 503)],
}


@pytest.mark.parametrize(("pattern", "deaths"), SEEDED.items(), ids=SEEDED)
async def test_a_seeded_history_has_the_pattern(history, pattern, deaths):
    endpoint = await history.endpoint(*deaths)
    [found] = await history.found("7d")
    count = sum(len(ages) for ages, _ in deaths)
    assert (found.endpoint_id, found.count, found.pattern) == (ids.show("endpoint", endpoint), count, pattern)
    assert found.endpoint_id in found.advice or "dlv_" in found.advice


async def test_an_endpoint_is_described_whole(history):
    endpoint = await history.endpoint(([60.0, 120.0], ErrorKind.TIMEOUT), ([30.0], 503))
    [found] = await history.found()
    assert found == DeathsReport(
        endpoint_id=ids.show("endpoint", endpoint),
        url="https://receiver.example/hooks",
        count=3,
        error="timeout",
        status=None,
        first_at=rfc3339.show(history.clock.now() - 120),
        last_at=rfc3339.show(history.clock.now() - 30),
        mean_attempts=1.0,
        pattern="mixed",
        advice=found.advice,
    )


async def test_without_dead_letters_there_is_nothing_to_say(history):
    await history.endpoint()
    assert await history.found() == []


async def test_what_died_before_the_window_is_left_out(history):
    await history.endpoint(([30 * MINUTE, 2 * HOUR, 2 * DAY], 422))
    counts = {window: (await history.found(window))[0].count for window in ("1h", "24h", "7d", "90d")}
    assert counts == {"1h": 1, "24h": 2, "7d": 3, "90d": 3}
    assert await history.found("15m") == []


async def test_those_with_the_most_come_first_and_no_more_than_twenty(history):
    made = {
        number: await history.endpoint((over(HOUR, number), 422)) for number in (3, 1, 4, 2, *range(5, 24))
    }
    found = await history.found()
    assert [each.count for each in found] == list(range(23, 3, -1))
    assert [each.endpoint_id for each in found] == [
        ids.show("endpoint", made[number]) for number in range(23, 3, -1)
    ]


async def test_more_letters_than_one_step_reads_are_all_counted(history):
    worker, lane = await an_owned_lane(history.store)
    number = max(sqlite_deaths.STEP_ROWS, postgres_deaths.STEP_ROWS) + 100
    publications = [a_publication(lane.endpoint_id) for _ in range(number)]
    for start in range(0, number, 1_000):
        await accepted(history.store, *publications[start : start + 1_000])
    letters = [delivery_of(each.event.id, 0) for each in publications]
    at = history.clock.now() - HOUR
    deaths = [
        a_settlement(
            letter,
            lane.endpoint_id,
            epoch=lane.epoch,
            attempt=an_attempt(letter, outcome=Outcome.REJECTED, status=422, at=at),
            state=State.DEAD,
            reason=Reason.REJECTED,
        )
        for letter in letters
    ]
    for start in range(0, number, 1_000):
        await history.store.settle(worker, deaths[start : start + 1_000], now=at)
    [found] = await history.found()
    assert (found.count, found.pattern) == (number, "rejected")
    assert ids.show("delivery", max(letters)) in found.advice


async def test_only_an_accounts_own_and_only_an_endpoints(history):
    mine = await history.endpoint(([60.0], 422), account="mine")
    other = await history.endpoint(([60.0], 422), account="other")
    assert {each.endpoint_id for each in await history.found()} == {
        ids.show("endpoint", each) for each in (mine, other)
    }
    for asked in ({"account": "mine"}, {"endpoint": mine}, {"account": "mine", "endpoint": mine}):
        assert [each.endpoint_id for each in await history.found(**asked)] == [ids.show("endpoint", mine)]
    assert await history.found(account="mine", endpoint=other) == []


async def test_a_deleted_endpoint_has_no_url_and_its_letters_are_to_be_discarded(history):
    endpoint = await history.endpoint((over(HOUR, 12), 503))
    await history.store.delete_endpoint(endpoint, now=history.clock.now())
    [found] = await history.found()
    assert (found.url, found.pattern) == (None, "outage")
    assert f"`hookline dead discard --endpoint {found.endpoint_id} --since 24h`" in found.advice


async def test_the_advice_knows_the_endpoint(history):
    await history.endpoint(([60.0], 401), headers={"x-api-key": "very secret"})
    await history.endpoint((over(HOUR, 2), 429), rate_limit=RateLimit(8.0, 10))
    await history.endpoint((over(HOUR, 11), 503), retry={"preset": "standard"}, circuit=CircuitPolicy())
    outage, throttled, credentials = await history.found()
    assert "--retry" not in outage.advice
    assert "--rate 4`" in throttled.advice
    assert "--header 'x-api-key: VALUE'`" in credentials.advice
    assert "very secret" not in credentials.advice


async def test_what_is_kept_of_each_endpoint_does_not_depend_on_the_parts_they_come_in():
    random = Random(3)
    parts = []
    for number in range(60):
        endpoint = EndpointId(number.to_bytes(16, "big"))
        for minute in range(number % 7 + 1):
            letter = a_death(endpoint, minute=minute, count=random.randrange(1, 9))
            parts.append(letter)
    whole, halves = WorstEndpoints(), WorstEndpoints()
    for each in parts:
        whole.add(each)
        for _ in range(each.count):
            halves.add(msgspec.structs.replace(each, count=1, attempts=each.attempts // each.count))
    totals = [(each.id, each.total.count, each.pattern) for each in whole.found()]
    assert [(each.id, each.total.count, each.pattern) for each in halves.found()] == totals
    assert len(totals) == analysis.MOST_ENDPOINTS
    assert [count for _, count, _ in totals] == sorted((count for _, count, _ in totals), reverse=True)


def a_death(endpoint: EndpointId, *, minute: int, count: int) -> DeathCount:
    return DeathCount(
        endpoint_id=endpoint,
        reason=Reason.EXHAUSTED,
        status=503,
        error=ErrorKind.HTTP_5XX,
        minute=minute,
        count=count,
        attempts=7 * count,
        at_first_attempt=0,
        first_at=minute * 60.0,
        last_at=minute * 60.0,
        newest=delivery_of(a_publication(endpoint).event.id, 0),
    )
