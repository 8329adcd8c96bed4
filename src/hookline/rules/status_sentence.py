"""Says in one sentence how the installation is, and what is wrong.

`hookline status` and the dashboard show the same words. The first rule that holds gives the headline; the endpoints
that fail are listed below it, the worst first.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from hookline.rules.death_pattern import Pattern
from hookline.rules.outbox_state import OWN, outbox_name

STALE = 30.0  # seconds; older figures are not trusted
MANY = 0.2  # of the endpoints with traffic: then the cause is more likely here than there
ENOUGH_TO_BLAME = 5  # endpoints that fail at once: our own network is to be looked at, whatever they answer
TOGETHER_S = 300.0  # between the first and the last that began to fail
ONE_HOST = 3  # endpoints of one host that are shown as one
MOST_SHOWN = 5
FEWEST_ATTEMPTS = 5  # in 15 minutes; with fewer nothing is said about an endpoint whose circuit is closed

_MOST_OF_A_REASON = 160  # characters of why an outbox cannot be read
_MINUTE, _HOUR, _DAY = 60.0, 3_600.0, 86_400.0
_FIRST, _LAST = 0.0, 253_402_300_799.0  # the years 1970 to 9999


class Severity(StrEnum):
    """How bad it is."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"
    NEW = "new"  # nothing was published yet


class FailingEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that does not take what it is sent."""

    id: str
    url: str
    account: str
    answer: str  # the commonest of the last 15 minutes: "503", "connect_refused"
    since: float | None = None  # the first attempt that was not accepted after the last one that was
    cause: str | None = None  # the analysis, in words
    pattern: Pattern | None = None  # likewise, as one of the known patterns
    waiting: int = 0
    dead: int = 0
    next_probe_at: float | None = None  # its circuit is open until then
    last_accepted_at: float | None = None
    is_gone: bool = False  # it answered 410, so hookline disabled it, at `since`


class UnreadableOutbox(msgspec.Struct, frozen=True):
    """An outbox that cannot be read now."""

    name: str
    why: str


class LateOutbox(msgspec.Struct, frozen=True):
    """An outbox whose rows wait, or that could not be read."""

    name: str
    since: float


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the installation."""

    now: float
    as_of: float | None  # when it was counted; None: never
    is_answering: bool = True  # the database; if not, nothing else here is known
    is_ready: bool = True
    workers: int = 1  # that run now
    worker_seen_at: float | None = None  # the last sign of any worker, if none runs
    is_stuck: bool = False  # a delivery is older than its whole retry schedule
    active: int = 0  # endpoints with traffic
    failing: tuple[FailingEndpoint, ...] = ()
    more_failing: int = 0  # of which only the number is known
    gone: tuple[FailingEndpoint, ...] = ()  # disabled by hookline within a day; something waits or is dead
    late_since: float | None = None  # when the oldest due delivery became due, if that raised an alert
    is_growing: bool = False  # the queue, for a quarter of an hour
    unreadable_outboxes: tuple[UnreadableOutbox, ...] = ()
    late_outboxes: tuple[LateOutbox, ...] = ()  # that raised an alert
    outbox_refused: int = 0  # rows of outboxes that wait for a decision
    dead: int = 0
    died_at: float | None = None  # the newest dead letter
    slow: int = 0  # endpoints
    disabled: int = 0  # likewise
    has_events: bool = True
    alerts: int = 0  # that fire
    is_theirs: bool = (
        False  # one account's, told to that account: its endpoints are "yours", our network is not
    )


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint that fails or is gone, or several of one host that fail."""

    name: str  # the URL without scheme, or the host
    sentence: str
    endpoints: tuple[FailingEndpoint, ...]


class StatusSentence(msgspec.Struct, frozen=True, kw_only=True):
    """The headline and what belongs below it."""

    level: Severity
    headline: str
    step: str | None = None  # the command that tells more of what the headline says of outboxes
    troubles: tuple[Trouble, ...] = ()
    more: int = 0  # troubles that are not shown
    is_healthy: bool = True  # nobody has to get up: nothing fails, is late or raised an alert


def judge(situation: Situation) -> StatusSentence:
    """How the installation is."""
    level, headline = _headline(situation)
    troubles = _troubles(situation.failing, now=situation.now)
    # Those that are gone take the places that are left. One without a place still has its alert.
    gone = [
        Trouble(
            name=_without_scheme(each.url), sentence=_farewell(each, now=situation.now), endpoints=(each,)
        )
        for each in sorted(situation.gone, key=_badness)
    ]
    return StatusSentence(
        level=level,
        headline=headline,
        step=_step(situation, headline),
        troubles=tuple([*troubles[:MOST_SHOWN], *gone][:MOST_SHOWN]),
        more=max(0, len(troubles) - MOST_SHOWN) + situation.more_failing,
        is_healthy=level is not Severity.BAD
        and _late(situation) is None
        and not situation.unreadable_outboxes
        and not situation.alerts,
    )


def _step(now_is: Situation, headline: str) -> str | None:
    said = _outboxes(now_is)
    if said is None or not headline.endswith(said):
        return None
    is_of_sources = now_is.unreadable_outboxes or now_is.late_outboxes
    return "hookline outbox sources" if is_of_sources else "hookline outbox list"


def is_failing(*, is_circuit_closed: bool, attempts: int, accepted: int, is_back: bool = False) -> bool:
    """Whether an endpoint fails, by its circuit and its attempts of the last 15 minutes.

    Never by a day's rate: behind an open circuit few attempts are made, and the rate stays high. One that accepted
    everything in its newest minute is back.
    """
    return not is_circuit_closed or (not is_back and attempts >= FEWEST_ATTEMPTS and 2 * accepted < attempts)


def age(seconds: float) -> str:
    """A length of time as people say it: "45 s", "4 min", "3 h", "2 days"."""
    seconds = min(max(seconds, 0.0), _LAST)
    if seconds < _MINUTE:
        return f"{int(seconds)} s"
    if seconds < 2 * _HOUR:
        return f"{int(seconds / _MINUTE)} min"
    if seconds < 2 * _DAY:
        return f"{int(seconds / _HOUR)} h"
    return f"{int(seconds / _DAY)} days"


def _headline(now_is: Situation) -> tuple[Severity, str]:
    found = _itself(now_is) or _many(now_is) or _some(now_is)
    if found is not None:
        return Severity.BAD, found
    found = _late(now_is) or _outboxes(now_is) or _left_over(now_is) or _small(now_is)
    if found is not None:
        return Severity.WARNING, found
    if not now_is.has_events:
        return (
            Severity.NEW,
            "Nothing was sent to you yet." if now_is.is_theirs else "Nothing was published yet.",
        )
    return Severity.GOOD, "All is well."


def _itself(now_is: Situation) -> str | None:
    if not now_is.is_answering:
        return "Nothing is known: the database does not answer."
    if not now_is.is_ready:
        return "Nothing is accepted: the database does not take writes."
    if not now_is.workers:
        seen = now_is.worker_seen_at
        if seen is None:
            return "Nothing is being sent: no worker runs."
        return f"Nothing is being sent: no worker has run for {age(now_is.now - seen)}."
    if now_is.as_of is None:
        return "Nothing is known yet: no worker has counted."
    if now_is.now - now_is.as_of > STALE:
        return f"Nothing newer is known: the figures are {age(now_is.now - now_is.as_of)} old."
    if now_is.is_stuck:
        return "Deliveries are stuck: some wait for longer than their whole retry schedule."
    return None


def _many(now_is: Situation) -> str | None:
    failing = len(now_is.failing) + now_is.more_failing
    if failing < 2 or failing <= MANY * now_is.active:
        return None
    known = [each.since for each in now_is.failing if each.since is not None]
    since = f" since {_clock_time(min(known), now=now_is.now)}" if known else ""
    if known and max(known) - min(known) > TOGETHER_S:
        since = f", the first{since}"
    # A few that answer, if only to refuse, say nothing against our own network.
    is_ours = failing >= ENOUGH_TO_BLAME or not any(each.answer.isdigit() for each in now_is.failing)
    if now_is.is_theirs:
        return f"{failing:,} of your {now_is.active:,} endpoints are failing{since}."
    hint = " Look at your own network first." if is_ours else ""
    return f"{failing:,} of {now_is.active:,} endpoints are failing{since}.{hint}"


def _some(now_is: Situation) -> str | None:
    if not now_is.failing:
        return None
    failing = len(now_is.failing) + now_is.more_failing
    others = _late(now_is) or _outboxes(now_is) or "Everything else flows."
    return f"{_are(failing, _endpoints(now_is))} failing. {others}"


def _late(now_is: Situation) -> str | None:
    if now_is.late_since is not None:
        return f"Deliveries are late: the oldest is due since {age(now_is.now - now_is.late_since)}."
    if now_is.is_growing:
        return "Deliveries are late: more come in than go out. Start more workers."
    return None


def _outboxes(now_is: Situation) -> str | None:
    """What applications published and nobody gets yet."""
    if now_is.unreadable_outboxes:
        return _unreadable(now_is.unreadable_outboxes)
    if now_is.late_outboxes:
        first = min(now_is.late_outboxes, key=lambda each: (each.since, each.name))
        more = len(now_is.late_outboxes) - 1
        others = f", and {more:,} more are" if more > 1 else ", and 1 more is" if more else ""
        return f"The outbox {outbox_name(first.name)} is late by {age(now_is.now - first.since)}{others}."
    if now_is.outbox_refused:
        were = "outbox row was" if now_is.outbox_refused == 1 else "outbox rows were"
        return f"{now_is.outbox_refused:,} {were} refused and will not be sent unless retried."
    return None


def _unreadable(outboxes: Sequence[UnreadableOutbox]) -> str:
    first, many = outboxes[0], len(outboxes)
    name = "hookline's own" if first.name == OWN else _on_one_line(first.name)
    why = _on_one_line(first.why).rstrip(".")
    if len(why) > _MOST_OF_A_REASON:
        why = f"{why[: _MOST_OF_A_REASON - 1]}…"
    more = f"; and {many - 1:,} more" if many > 1 else ""
    return f"{many:,} {'outbox' if many == 1 else 'outboxes'} cannot be read: {name}: {why}{more}."


def _on_one_line(text: str) -> str:
    """A text of somebody else's, without what moves a cursor or turns the direction."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _left_over(now_is: Situation) -> str | None:
    if not now_is.dead:
        return None
    when = "" if now_is.died_at is None else f" from {_day(now_is.died_at, now=now_is.now)}"
    verb = "letter is" if now_is.dead == 1 else "letters are"
    return f"All flows now. {now_is.dead:,} dead {verb} left{when}."


def _small(now_is: Situation) -> str | None:
    said = [
        f"{_are(number, _endpoints(now_is))} {word}"
        for number, word in ((now_is.slow, "slow"), (now_is.disabled, "disabled"))
        if number
    ]
    return f"All flows. {' and '.join(said)}." if said else None


def _endpoints(now_is: Situation) -> tuple[str, str]:
    """One of them, and several."""
    return ("of your endpoints", "of your endpoints") if now_is.is_theirs else ("endpoint", "endpoints")


def _are(number: int, nouns: tuple[str, str]) -> str:
    one, many = nouns
    return f"{number:,} {one} is" if number == 1 else f"{number:,} {many} are"


def _troubles(failing: Sequence[FailingEndpoint], *, now: float) -> list[Trouble]:
    """Each endpoint by itself, but those of one host together if they are many; the worst first."""
    of_hosts: dict[str, list[FailingEndpoint]] = defaultdict(list)
    for each in failing:
        of_hosts[urlsplit(each.url).netloc].append(each)
    groups: list[tuple[str, list[FailingEndpoint]]] = []
    for host, endpoints in of_hosts.items():
        if len(endpoints) >= ONE_HOST:
            groups.append((host, sorted(endpoints, key=_badness)))
        else:
            groups += [(_without_scheme(each.url), [each]) for each in endpoints]
    groups.sort(key=lambda group: (sum(_badness(each)[0] for each in group[1]), group[0]))
    return [
        Trouble(name=name, sentence=_sentence(endpoints, now=now), endpoints=tuple(endpoints))
        for name, endpoints in groups
    ]


def _badness(endpoint: FailingEndpoint) -> tuple[int, str]:
    return -(endpoint.waiting + endpoint.dead), endpoint.id


def _sentence(endpoints: Sequence[FailingEndpoint], *, now: float) -> str:
    worst = endpoints[0]
    known = [each.since for each in endpoints if each.since is not None]
    since = f" since {_clock_time(min(known), now=now)}, {age(now - min(known))}" if known else ""
    answers = Counter(each.answer for each in endpoints).most_common()
    if len(answers) > 1:
        # They have no cause in common, and each has its own next try.
        told = ", ".join(f"{answer} at {number:,}" for answer, number in answers)
        return f"{len(endpoints):,} endpoints of this host fail{since}: {told}."
    verb = "Answers" if worst.answer.isdigit() else "Ends in"
    said = f"{verb} {worst.answer}{since}."
    if len(endpoints) > 1:
        said = f"{len(endpoints):,} endpoints of this host fail. {said}"
    if worst.cause:
        said = f"{said} {worst.cause}"
    if worst.next_probe_at is not None:
        wait = worst.next_probe_at - now
        said = f"{said} The next try is {'in ' + age(wait) if wait >= 1 else 'due'}."
    return said


def _farewell(endpoint: FailingEndpoint, *, now: float) -> str:
    since = endpoint.since
    when = "" if since is None else f" since {_clock_time(since, now=now)}, {age(now - since)}"
    said = f"Answered {endpoint.answer}, so it is disabled{when}."
    return f"{said} {endpoint.cause}" if endpoint.cause else said


def _without_scheme(url: str) -> str:
    return url.split("://", 1)[-1]


def _clock_time(at: float, *, now: float) -> str:
    """The time of day in UTC; with the date if it was not today."""
    moment = _moment(at)
    if moment.date() == _moment(now).date():
        return f"{moment:%H:%M}"
    return f"{moment.day} {moment:%b, %H:%M}"


def _day(at: float, *, now: float) -> str:
    moment = _moment(at).date()
    days = (_moment(now).date() - moment).days
    if days <= 0:
        return "today"
    return "yesterday" if days == 1 else f"{moment.day} {moment:%b}"


def _moment(at: float) -> datetime:
    """A stored time, whatever it is."""
    return datetime.fromtimestamp(min(max(at, _FIRST), _LAST), UTC)
