"""The pattern in an endpoint's dead letters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.model import DeliveryId, ErrorKind, Reason
from hookline.rules.death_pattern import (
    SLOT_S,
    DeathCause,
    DeathFigures,
    DeathTally,
    Pattern,
    pattern_of,
)

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
NOON = 1_700_000_000 // 86_400 * 86_400 + 43_200.0

Letter = tuple[DeathCause, float, int]  # when it died, and after how many attempts


def letters(
    count: int, cause: DeathCause, *, over: float, attempts: int = 7, at: float = NOON
) -> list[Letter]:
    """So many deaths of a cause, spread evenly over so many seconds."""
    return [(cause, at + over * place / max(count - 1, 1), attempts) for place in range(count)]


def answer(status: int, **fields: Any) -> DeathCause:
    kind = ErrorKind.HTTP_5XX if status >= 500 else ErrorKind.HTTP_4XX
    return DeathCause(**({"reason": Reason.EXHAUSTED, "status": status, "error": kind} | fields))


def refusal(status: int) -> DeathCause:
    return answer(status, reason=Reason.REJECTED)


def failure(error: ErrorKind) -> DeathCause:
    return DeathCause(Reason.EXHAUSTED, None, error)


def figures(letter: Letter, number: int = 0) -> DeathFigures:
    _, at, attempts = letter
    return DeathFigures(
        count=1,
        attempts=attempts,
        at_first_attempt=int(attempts == 1),
        first_at=at,
        last_at=at,
        newest=DeliveryId(number.to_bytes(16, "big")),
    )


def tally(given: list[Letter]) -> DeathTally:
    found = DeathTally()
    for number, letter in enumerate(given):
        found.add(letter[0], figures(letter, number), slot=int(letter[1] // SLOT_S))
    return found


GONE = DeathCause(Reason.GONE, 410, ErrorKind.HTTP_410)
THROTTLED = answer(429, error=ErrorKind.HTTP_429)
CRASH = DeathCause(Reason.CRASH_LIMIT)
BLOCKED = failure(ErrorKind.BLOCKED_ADDRESS)
NETWORK = (
    ErrorKind.DNS,
    ErrorKind.TLS,
    ErrorKind.TIMEOUT,
    ErrorKind.RESET,
    ErrorKind.PROTOCOL,
    ErrorKind.CONNECT_REFUSED,
    ErrorKind.CONNECT_TIMEOUT,
    ErrorKind.CONNECT_FAILED,
)


def daily(count: int, days: int, cause: DeathCause | None = None) -> list[Letter]:
    """So many deaths a day, some hours apart, for so many days."""
    return [
        letter
        for day in range(days)
        for letter in letters(count, cause or answer(503), over=8 * HOUR, at=NOON + day * DAY - 4 * HOUR)
    ]


CASES: list[tuple[str, list[Letter], Pattern]] = [
    # The ones that everybody asks about.
    ("50 x 503 in an hour", letters(50, answer(503), over=HOUR), Pattern.OUTAGE),
    ("30 x 401", letters(30, refusal(401), over=HOUR, attempts=1), Pattern.CREDENTIALS),
    ("30 x 429", letters(30, THROTTLED, over=HOUR), Pattern.THROTTLED),
    ("2 a day for 7 days", daily(2, 7), Pattern.INTERMITTENT),
    ("20 x 422", letters(20, refusal(422), over=HOUR, attempts=1), Pattern.REJECTED),
    ("a 410", letters(1, GONE, over=0, attempts=1), Pattern.GONE),
    (
        "half 401, half 503",
        letters(25, refusal(401), over=HOUR, attempts=1) + letters(25, answer(503), over=HOUR),
        Pattern.MIXED,
    ),
    # Outages.
    ("50 within an hour among 60 days", letters(50, answer(500), over=HOUR) + daily(1, 12), Pattern.OUTAGE),
    (
        "49 of 100 in an hour",
        letters(49, answer(503), over=HOUR, at=NOON - DAY) + daily(3, 17),
        Pattern.MIXED,
    ),
    ("10 in an hour", letters(10, answer(503), over=HOUR), Pattern.OUTAGE),
    ("9 in an hour", letters(9, answer(503), over=HOUR), Pattern.MIXED),
    ("8 of 10 in an hour", letters(8, answer(502), over=HOUR) + daily(1, 2), Pattern.OUTAGE),
    ("7 of 10 in an hour", letters(7, answer(502), over=HOUR) + daily(1, 3), Pattern.MIXED),
    (
        "an hour that begins within a minute",
        letters(50, answer(503), over=HOUR, at=NOON + 59.9),
        Pattern.OUTAGE,
    ),
    ("12 in two hours", letters(12, answer(503), over=2 * HOUR), Pattern.MIXED),
    ("100 an hour for a day", letters(2_400, answer(503), over=DAY), Pattern.OUTAGE),
    ("one hour across midnight", letters(50, answer(503), over=HOUR, at=NOON + 11.5 * HOUR), Pattern.OUTAGE),
    *((f"20 x {kind}", letters(20, failure(kind), over=HOUR), Pattern.OUTAGE) for kind in NETWORK),
    (
        "refused, then 503, then timeouts",
        [
            *letters(10, failure(ErrorKind.CONNECT_REFUSED), over=10 * MINUTE),
            *letters(10, answer(503), over=10 * MINUTE, at=NOON + 10 * MINUTE),
            *letters(10, failure(ErrorKind.TIMEOUT), over=10 * MINUTE, at=NOON + 20 * MINUTE),
        ],
        Pattern.OUTAGE,
    ),
    ("503 that was not to be retried", letters(60, refusal(503), over=HOUR, attempts=1), Pattern.REJECTED),
    # Credentials.
    ("one 401", letters(1, refusal(401), over=0, attempts=1), Pattern.CREDENTIALS),
    (
        "401 and 403",
        letters(5, refusal(401), over=DAY) + letters(5, refusal(403), over=DAY),
        Pattern.CREDENTIALS,
    ),
    ("401 that is retried", letters(60, answer(401), over=HOUR), Pattern.CREDENTIALS),
    ("401 a few a day", daily(2, 7, refusal(401)), Pattern.CREDENTIALS),
    (
        "80 % of 401",
        letters(8, refusal(401), over=HOUR) + letters(2, answer(503), over=HOUR),
        Pattern.CREDENTIALS,
    ),
    (
        "79 % of 401",
        letters(79, refusal(401), over=HOUR) + letters(21, answer(503), over=HOUR),
        Pattern.MIXED,
    ),
    # Throttled.
    ("one 429", letters(1, THROTTLED, over=0), Pattern.THROTTLED),
    ("429 that was not to be retried", letters(20, refusal(429), over=HOUR, attempts=1), Pattern.THROTTLED),
    (
        "429 and a few 503",
        letters(40, THROTTLED, over=HOUR) + letters(10, answer(503), over=HOUR),
        Pattern.THROTTLED,
    ),
    # Intermittent.
    ("1 a day for 3 days", daily(1, 3), Pattern.INTERMITTENT),
    ("1 a day for 2 days", daily(1, 2), Pattern.MIXED),
    ("5 a day for 7 days", daily(5, 7), Pattern.INTERMITTENT),
    ("6 a day for 7 days", daily(6, 7), Pattern.MIXED),
    (
        "on the first, the fourth and the seventh day",
        [letter for day in (0, 3, 6) for letter in letters(1, answer(500), over=0, at=NOON + day * DAY)],
        Pattern.INTERMITTENT,
    ),
    (
        "on the first, the fourth and the eighth day",
        [letter for day in (0, 3, 7) for letter in letters(1, answer(500), over=0, at=NOON + day * DAY)],
        Pattern.MIXED,
    ),
    (
        "timeouts and resets a few a day",
        daily(1, 4, failure(ErrorKind.TIMEOUT)) + daily(2, 5, failure(ErrorKind.RESET)),
        Pattern.INTERMITTENT,
    ),
    # Rejected.
    ("one 422", letters(1, refusal(422), over=0, attempts=1), Pattern.REJECTED),
    (
        "422 a few a day",
        letters(14, refusal(422), over=6 * DAY, attempts=1),
        Pattern.REJECTED,
    ),
    ("422 at a later attempt", letters(20, refusal(422), over=HOUR, attempts=3), Pattern.MIXED),
    (
        "two statuses",
        letters(10, refusal(400), over=HOUR, attempts=1) + letters(10, refusal(422), over=HOUR, attempts=1),
        Pattern.MIXED,
    ),
    (
        "a redirect",
        letters(3, DeathCause(Reason.REJECTED, 301, ErrorKind.HTTP_3XX), over=HOUR, attempts=1),
        Pattern.REJECTED,
    ),
    ("404", letters(3, refusal(404), over=HOUR, attempts=1), Pattern.REJECTED),
    # Gone.
    ("an outage, then 410", [*letters(60, answer(503), over=HOUR), (GONE, NOON + 2 * HOUR, 1)], Pattern.GONE),
    ("410, then an outage", [(GONE, NOON - DAY, 1), *letters(60, answer(503), over=HOUR)], Pattern.OUTAGE),
    ("410 that is retried", letters(5, answer(410, error=ErrorKind.HTTP_410), over=HOUR), Pattern.GONE),
    # No pattern: what happened is in the advice.
    ("one 503", letters(1, answer(503), over=0), Pattern.MIXED),
    ("60 addresses that are not allowed", letters(60, BLOCKED, over=HOUR), Pattern.MIXED),
    ("60 errors of our own", letters(60, failure(ErrorKind.INTERNAL), over=HOUR), Pattern.MIXED),
    ("crashes", letters(60, CRASH, over=HOUR, attempts=0), Pattern.MIXED),
    (
        "crashes after a 401",
        letters(9, DeathCause(Reason.CRASH_LIMIT, 401, ErrorKind.HTTP_4XX), over=HOUR),
        Pattern.MIXED,
    ),
    (
        "a crash in an outage",
        [*letters(60, answer(503), over=HOUR), *letters(1, CRASH, over=0)],
        Pattern.OUTAGE,
    ),
]


@pytest.mark.parametrize(("given", "pattern"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_the_pattern_of(given, pattern):
    assert pattern_of(tally(given)) is pattern


def test_the_commonest_cause_comes_first_and_the_later_one_of_two():
    found = tally(
        [(answer(503), NOON, 7), (refusal(401), NOON + 1, 1), (THROTTLED, NOON, 7), (THROTTLED, NOON, 7)]
    )
    assert [cause.status for cause, _ in found.causes] == [429, 401, 503]


def test_the_figures_of_all_of_them():
    found = tally([(answer(503), NOON + 9, 7), (refusal(401), NOON + 4, 1), (CRASH, NOON + 6, 0)])
    assert found.total == DeathFigures(
        count=3,
        attempts=8,
        at_first_attempt=1,
        first_at=NOON + 4,
        last_at=NOON + 9,
        newest=DeliveryId((2).to_bytes(16, "big")),
    )


causes = st.builds(
    DeathCause,
    st.sampled_from([Reason.EXHAUSTED, Reason.REJECTED, Reason.GONE, Reason.CRASH_LIMIT]),
    st.none() | st.sampled_from([301, 401, 403, 404, 410, 422, 429, 500, 503]) | st.integers(100, 999),
    st.none() | st.sampled_from(ErrorKind),
)
histories = st.lists(
    st.tuples(
        causes | st.just(answer(503)),
        st.integers(0, 90 * 86_400).map(lambda at: NOON + at),
        st.integers(0, 50),
    ),
    min_size=1,
    max_size=80,
)


@given(histories, st.randoms(use_true_random=False))
def test_every_history_has_a_pattern_whatever_its_order_and_parts(given, random):
    found = tally(given)
    shuffled = list(enumerate(given))
    random.shuffle(shuffled)
    again = DeathTally()
    for number, letter in shuffled:
        again.add(letter[0], figures(letter, number), slot=int(letter[1] // SLOT_S))
    assert pattern_of(again) is pattern_of(found) in Pattern
    assert (again.causes, again.total) == (found.causes, found.total)
    assert found.total.count == len(given)


@given(st.lists(st.integers(0, 5 * 3_600), min_size=1, max_size=60))
def test_the_busiest_hour_is_counted_to_the_minute(times):
    found = tally([(answer(503), NOON + at, 7) for at in times])
    exactly = max(sum(start <= at <= start + 3_600 for at in times) for start in times)
    a_minute_more = max(sum(start - 60 < at < start + 3_660 for at in times) for start in times)
    assert exactly <= found.busiest_hour <= a_minute_more
