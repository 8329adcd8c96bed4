"""Decides which alerts fire, and which are resolved.

An alert fires at the first look that finds its condition, and is resolved after two looks in a row without it. A value
that fired has to fall to 90 % of its threshold, so that one that stays around the threshold does not fire again and
again. There is one alert of a kind for each subject. Nothing is ever said about hookline's own account: an alert that
cannot be delivered must not raise another.
"""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from itertools import pairwise

import msgspec

from hookline.model import OWN_ACCOUNT, Alert, AlertFact, AlertId, AlertKind, EndpointId
from hookline.rules.outbox_state import outbox_name
from hookline.rules.status_sentence import age

CLEAR_LOOKS = 2  # looks without the condition that resolve an alert
RESOLVE_AT = 0.9  # times the threshold: a value that fired is clear from there on
GROWTH_AGES = (900.0, 600.0, 300.0, 0.0)  # seconds: how old the samples are that are compared
GROWTH_TOLERANCE = 60.0  # seconds by which a sample may be younger or older
STUCK_AFTER_S = 3_600.0  # beyond an endpoint's whole retry schedule

_MOST_OF_A_URL = 80  # characters
_ROW, _ROWS = (
    "row was refused: it is not sent until it is",
    "rows were refused: none of them is sent until it is",
)
_OF_THE_INSTALLATION = (AlertKind.OLDEST_DUE, AlertKind.OUTBOX_REFUSED, AlertKind.OUTBOX_LATE)


class AlertThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """From where on a value raises an alert."""

    dead_letters: int = 100  # of one account
    oldest_due_s: float = 1_800.0
    queue: int = 100  # a smaller queue may grow
    slow_s: float = 2.0  # the 95th percentile
    outbox_refused: int = 0  # rows that wait for a decision
    outbox_late_s: float = 300.0  # of the oldest row, or since the outbox was last read


class GrowthSample(msgspec.Struct, frozen=True):
    """What waited and what was dead at some time, without hookline's own events."""

    at: float
    queue: int
    dead: int


class NewAlert(msgspec.Struct, frozen=True, kw_only=True):
    """An alert that is to fire."""

    kind: AlertKind
    subject: str
    account: str | None = None
    endpoint_id: EndpointId | None = None
    message: str
    value: float | None = None
    threshold: float | None = None


class AlertDecisions(msgspec.Struct, frozen=True, kw_only=True):
    """What changes."""

    fire: tuple[NewAlert, ...] = ()
    resolve: tuple[AlertId, ...] = ()
    looks: tuple[tuple[AlertId, int], ...] = ()  # the new number of clear looks of those that stay


class _Finding(Enum):
    """What a look says about a condition."""

    HOLDS = auto()
    NEARLY = auto()  # below its threshold, but not far enough to resolve it
    CLEAR = auto()
    UNKNOWN = auto()


class _Judged(msgspec.Struct, frozen=True):
    """A condition, and the alert that it would raise."""

    found: _Finding
    alert: NewAlert


def decide(
    facts: Sequence[AlertFact],
    samples: Sequence[GrowthSample],
    firing: Sequence[Alert],
    *,
    thresholds: AlertThresholds,
    schedules: Mapping[EndpointId, float],
    now: float,
) -> AlertDecisions:
    """What this look changes. `schedules`: the seconds that the whole retry schedule of an endpoint takes."""
    judged = {
        (each.alert.kind, each.alert.subject): each
        for each in [
            *(_of_fact(fact, thresholds, schedules, now) for fact in facts if fact.account != OWN_ACCOUNT),
            *_growing(samples, thresholds, now),
        ]
    }
    is_open = {(alert.kind, alert.subject) for alert in firing}
    fire = [each.alert for key, each in judged.items() if each.found is _Finding.HOLDS and key not in is_open]
    resolve: list[AlertId] = []
    looks: list[tuple[AlertId, int]] = []
    for alert in firing:
        seen = judged.get((alert.kind, alert.subject))
        found = _Finding.CLEAR if seen is None else seen.found
        clear = _clear_looks(alert.clear_looks, found)
        if clear >= CLEAR_LOOKS:
            resolve.append(alert.id)
        elif clear != alert.clear_looks:
            looks.append((alert.id, clear))
    return AlertDecisions(fire=tuple(fire), resolve=tuple(resolve), looks=tuple(looks))


def _clear_looks(before: int, found: _Finding) -> int:
    if found is _Finding.UNKNOWN:
        return before
    return before + 1 if found is _Finding.CLEAR else 0


def _against(value: float, threshold: float) -> _Finding:
    if value > threshold:
        return _Finding.HOLDS
    return _Finding.NEARLY if value > RESOLVE_AT * threshold else _Finding.CLEAR


def _of_fact(
    fact: AlertFact, thresholds: AlertThresholds, schedules: Mapping[EndpointId, float], now: float
) -> _Judged:
    value = fact.value or 0.0
    place = shown_place(fact.url) if fact.source is None else outbox_name(fact.source)
    threshold: float | None = None
    found = _Finding.HOLDS
    match fact.kind:
        case AlertKind.DEAD_LETTERS:
            threshold = thresholds.dead_letters
            found = _against(value, threshold)
            said = f"Account {fact.account} has {value:,.0f} dead letters, more than {threshold:,.0f}."
        case AlertKind.OLDEST_DUE:
            value, threshold = now - value, thresholds.oldest_due_s
            found = _against(value, threshold)
            said = f"The oldest due delivery is {age(value)} late; it is for {place}."
        case AlertKind.STUCK:
            whole = schedules.get(fact.endpoint_id) if fact.endpoint_id is not None else None
            value, threshold = now - value, None if whole is None else whole + STUCK_AFTER_S
            # There is no 90 % here: a delivery only gets older, and it is pending or not.
            found = _Finding.HOLDS if threshold is not None and value > threshold else _Finding.CLEAR
            said = f"A delivery to {place} is pending for {age(value)}, longer than its whole retry schedule."
        case AlertKind.ENDPOINT_SLOW:
            threshold = thresholds.slow_s
            found = _against(value, threshold)
            said = f"The slowest 5 % of the answers of {place} take over {value:.1f} s; the limit is {threshold:g} s."
        case AlertKind.OUTBOX_REFUSED:
            threshold = thresholds.outbox_refused
            found = _against(value, threshold)
            said = f"{value:,.0f} outbox {_ROW if value == 1 else _ROWS} retried."
        case AlertKind.OUTBOX_LATE:
            value, threshold = now - value, thresholds.outbox_late_s
            found = _against(value, threshold)
            said = f"The outbox {place} is {age(value)} late{_because(fact.detail)}."
        case AlertKind.CIRCUIT_OPEN:
            said = f"The circuit of {place} is open{_because(fact.detail)}."
        case _:
            said = f"hookline disabled {place}{_because(fact.detail)}."
    is_measured = threshold is not None
    # The oldest due delivery tells of the installation: its endpoint is only named. So does an outbox: its rows can be
    # of any account, and whoever writes them has to act.
    is_of_all = fact.kind in _OF_THE_INSTALLATION
    return _Judged(
        found,
        NewAlert(
            kind=fact.kind,
            subject=fact.source or "" if is_of_all else _subject(fact),
            account=None if is_of_all else fact.account,
            endpoint_id=None if is_of_all else fact.endpoint_id,
            message=said,
            value=round(value, 3) if is_measured else None,
            threshold=threshold,
        ),
    )


def _growing(
    samples: Sequence[GrowthSample], thresholds: AlertThresholds, now: float
) -> tuple[_Judged, _Judged]:
    found = [_sample_at(samples, now - back) for back in GROWTH_AGES]
    known = [each for each in found if each is not None]
    is_known = len(known) == len(found)
    dead = [each.dead for each in known]
    queue = [each.queue for each in known]
    minutes = int(GROWTH_AGES[0] / 60)
    return (
        _Judged(
            _grows(dead, is_known=is_known, least=0),
            NewAlert(
                kind=AlertKind.DEAD_LETTERS_GROWING,
                subject="",
                message=f"Dead letters have been growing for {minutes} min{_from_to(dead)}.",
                value=float(dead[-1]) if dead else None,
            ),
        ),
        _Judged(
            _grows(queue, is_known=is_known, least=thresholds.queue),
            NewAlert(
                kind=AlertKind.QUEUE_GROWING,
                subject="",
                message=f"The queue has been growing for {minutes} min{_from_to(queue)}: more workers may be needed.",
                value=float(queue[-1]) if queue else None,
                threshold=thresholds.queue,
            ),
        ),
    )


def _sample_at(samples: Sequence[GrowthSample], at: float) -> GrowthSample | None:
    """The sample nearest to this time, if one is near enough."""
    nearest = min(samples, key=lambda each: abs(each.at - at), default=None)
    return None if nearest is None or abs(nearest.at - at) > GROWTH_TOLERANCE else nearest


def _grows(values: Sequence[int], *, is_known: bool, least: int) -> _Finding:
    if not is_known:
        return _Finding.UNKNOWN
    is_more = all(later > earlier for earlier, later in pairwise(values))
    return _Finding.HOLDS if is_more and values[-1] >= least else _Finding.CLEAR


def _from_to(values: Sequence[int]) -> str:
    return f", from {values[0]:,} to {values[-1]:,}" if values else ""


def _subject(fact: AlertFact) -> str:
    return fact.account or "" if fact.endpoint_id is None else fact.endpoint_id.hex()


def shown_place(url: str | None) -> str:
    """An endpoint as people know it. Path and query may hold a token, and are left out."""
    place, slash, rest = (url or "an endpoint").split("://", 1)[-1].partition("/")
    place = place.partition("?")[0]
    shown = f"{place}/…" if rest else f"{place}{slash}"
    return shown if len(shown) <= _MOST_OF_A_URL else f"{shown[: _MOST_OF_A_URL - 1]}…"


def _because(detail: str | None) -> str:
    return f": {detail.rstrip('.')}" if detail else ""
