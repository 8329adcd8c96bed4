"""Lays out how the installation is, on one screen."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from hookline import rfc3339
from hookline.cli.output import counted
from hookline.cli.printing.columns import short_url, took
from hookline.cli.printing.short_ids import ShortIds
from hookline.cli.printing.table import Column, table_lines
from hookline.cli.printing.text import printable
from hookline.cli.printing.times import relative, span

WIDEST = 100  # columns
_INDENT = "  "
_NAMES = 10  # characters for the names of figures
_MOST_WORKERS = 3
# By what the failures look like. A test tells nothing of an endpoint that answers, and says what has to be changed.
_NEXT_STEPS: dict[str | None, tuple[str, ...]] = {
    "credentials": ("endpoints update {} --header 'authorization: VALUE'", "endpoints recover {}"),
    "throttled": ("endpoints update {} --rate 5",),
    "rejected": ("dead analyse --endpoint {}",),
    "gone": ("endpoints update {} --to URL", "endpoints enable {}"),
    None: ("endpoints recover {}",),
}

Status = Mapping[str, Any]


def status_lines(status: Status, *, width: int, now: float) -> Iterator[str]:
    """The screen, line by line; the first is the sentence."""
    width = min(width, WIDEST)
    yield from textwrap.wrap(printable(status["headline"]), width)
    if step := status.get("step"):
        yield f"{_INDENT * 2}{step}"
    named = [one["endpoint_id"] for each in status["troubles"] for one in each["endpoints"]]
    short = ShortIds([*named, *(each["endpoint_id"] for each in status["worst"])])
    for trouble in status["troubles"]:
        yield ""
        yield from _trouble(trouble, short, width=width, now=now)
    if status["more_troubles"]:
        yield ""
        yield f"and {status['more_troubles']:,} more: hookline endpoints list --circuit open"
    if status.get("level") == "bad" and not status["troubles"]:
        yield f"{_INDENT * 2}hookline doctor"
    # What is named above has an alert as well.
    if alerts := [each for each in status["alerts"] if each.get("endpoint_id") not in named]:
        yield ""
        yield "Alerts"
        for alert in alerts:
            since = relative(rfc3339.read(alert["since"]), now=now)
            yield from _wrapped(f"{alert['message']} ({alert['kind']}, since {since})", width)
    if status["worst"]:
        yield ""
        yield from table_lines(status["worst"], _worst_columns(short), room=width, is_coloured=False)
    if figures := list(_figures(status, now=now)):
        yield ""
        for name, text in figures:
            yield from _figure(name, text, width)


def health_lines(health: Mapping[str, Any], *, width: int, now: float) -> Iterator[str]:
    """How much waits, fails and arrives, line by line."""
    for name, text in _health_figures(health, now=now):
        yield from _figure(name, text, min(width, WIDEST))


def _trouble(trouble: Mapping[str, Any], short: ShortIds, *, width: int, now: float) -> Iterator[str]:
    endpoints = trouble["endpoints"]
    yield from textwrap.wrap(printable(trouble["name"]), width)
    yield from _wrapped(trouble["sentence"], width)
    worst = endpoints[0]
    facts = [
        f"account {worst['account']}",
        f"{sum(each['waiting'] for each in endpoints):,} waiting",
        f"{sum(each['dead'] for each in endpoints):,} dead",
    ]
    if worst["circuit"] != "closed":
        opened = worst["opened_at"]
        since = "" if opened is None else f" for {span(max(0.0, now - rfc3339.read(opened)))}"
        facts.append(f"circuit {worst['circuit'].replace('_', ' ')}{since}")
    if worst["last_success_at"] is not None:
        facts.append(f"last accepted {relative(rfc3339.read(worst['last_success_at']), now=now)}")
    yield from _wrapped(", ".join(facts), width)
    for step in _NEXT_STEPS.get(worst.get("pattern"), _NEXT_STEPS[None]):
        yield f"{_INDENT * 2}hookline {step.format(short.show(worst['endpoint_id']))}"


def _worst_columns(short: ShortIds) -> list[Column]:
    return [
        Column("MOST DEAD AND WAITING", lambda row: short_url(row["url"]), least=20, is_cut_inside=True),
        Column("ID", lambda row: short.show(row["endpoint_id"])),
        Column("ACCOUNT", lambda row: row["account"], least=8, rank=1),
        Column("DEAD", lambda row: f"{row['dead']:,}", is_number=True),
        Column("WAITING", lambda row: f"{row['pending'] + row['awaiting_retry']:,}", is_number=True),
    ]


def _figures(status: Status, *, now: float) -> Iterator[tuple[str, str]]:
    if status["health"] is not None:
        yield from _counts(status["health"], now=now)
    if (rates := status["rates"]) is not None:
        share = rates["delivery_rate"]
        accepted = "" if share is None else f", {_percent(share)} accepted"
        minutes = rates["window_s"] // 60
        said = f"{rates['attempts_per_s']:,.1f} attempts a second{accepted}, over {minutes} minutes"
        yield "rate", said if share is not None else f"no attempts in {minutes} minutes"
    if status["workers"] is not None:
        yield "workers", _workers(status["workers"])
    if (database := status["database"]) is not None:
        answer = (
            "does not answer"
            if database["latency_ms"] is None
            else f"answers in {took(database['latency_ms'])}"
        )
        why = "" if database["not_ready"] is None else f"; takes no publishes: {database['not_ready']}"
        yield "database", answer + why
    if status["health"] is not None:
        yield "counted", f"{_counted(status['health'], now=now)}; times of day are UTC"


def _health_figures(health: Mapping[str, Any], *, now: float) -> Iterator[tuple[str, str]]:
    yield from _counts(health, now=now)
    yield "circuits", f"{health['circuits_open']:,} open"
    delivered = f"{health['delivered_last_hour']:,} delivered, {health['failed_last_hour']:,} failed"
    share = health["delivery_rate"]
    yield "last hour", delivered + ("" if share is None else f", {_percent(share)} of the attempts accepted")
    if (mean := health["mean_response_ms_last_hour"]) is not None:
        yield "responses", f"take {took(mean)} on average"
    end = health["end_to_end_ms"]
    if end["p50"] is not None:
        yield "end to end", f"p50 {took(end['p50'])}, p95 {took(end['p95'])}, p99 {took(end['p99'])}"
    yield "workers", f"{health['workers']:,} delivering"
    yield "counted", _counted(health, now=now)


def _counts(health: Mapping[str, Any], *, now: float) -> Iterator[tuple[str, str]]:
    waiting = (
        f"{health['pending']:,} pending, {health['awaiting_retry']:,} awaiting a retry, "
        f"{health['in_flight']:,} in flight"
    )
    yield "waiting", waiting
    due = health["oldest_due_age_s"]
    yield "oldest due", "none is overdue" if due is None else f"for {span(due)}"
    yield "dead", f"{health['dead']:,}"
    if refused := health.get("outbox_refused", 0):
        yield "refused", counted(refused, "outbox row", "outbox rows")


def _workers(workers: list[Mapping[str, Any]]) -> str:
    if not workers:
        return "none"
    shown = [
        f"{each['host']} {each['pid']} {each['state']}, {each['lanes']:,} lane{'' if each['lanes'] == 1 else 's'}, {each['delivered_per_s']:,.1f}/s"
        for each in workers[:_MOST_WORKERS]
    ]
    more = len(workers) - len(shown)
    return "; ".join([*shown, *([f"and {more:,} more: hookline workers"] if more else [])])


def _counted(health: Mapping[str, Any], *, now: float) -> str:
    if health["as_of"] is None:
        return "never"
    return relative(rfc3339.read(health["as_of"]), now=now)


def _percent(share: float) -> str:
    """Never 100 % unless it is all of them."""
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"


def _figure(name: str, text: str, width: int) -> list[str]:
    head = name.ljust(_NAMES) + _INDENT
    return textwrap.wrap(
        printable(text), width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        printable(text), width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )
