"""Defines the columns of the lists."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hookline.cli.exits import NOT_FOUND, CommandError
from hookline.cli.printing.short_ids import ShortIds
from hookline.cli.printing.table import Column, Columns, Row
from hookline.cli.printing.times import Times

if TYPE_CHECKING:
    from hookline.cli.client import Client

GOOD, DOUBTFUL, BAD = "green", "yellow", "red"
_COLOURS = {
    **dict.fromkeys(("delivered", "active", "running", "done", "resolved", "ok"), GOOD),
    **dict.fromkeys(("pending", "sending", "paused", "circuit half open", "slow", "draining"), DOUBTFUL),
    **dict.fromkeys(
        ("dead", "disabled", "circuit open", "invalid", "revoked", "stale", "failed", "firing"), BAD
    ),
    **dict.fromkeys(("away", "missing", "forbidden", "late"), BAD),
}
_URL_LEAST, _WORDS_LEAST, _NAME_LEAST, _COUNTS_LEAST = 20, 10, 8, 32


class EndpointUrls:
    """The URLs of endpoints, each asked for once."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._known: dict[str, str | None] = {}

    def of(self, id: str) -> str | None:
        """The endpoint's URL; None if it is deleted."""
        if id not in self._known:
            try:
                self._known[id] = self._client.get(f"/v1/endpoints/{id}")["url"]
            except CommandError as error:
                if error.exit_status != NOT_FOUND:
                    raise
                self._known[id] = None
        return self._known[id]


def delivery_columns(client: "Client", *, utc: bool) -> Columns:
    """Deliveries. WHEN is when they were delivered or died, or are due."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        return [
            _id(rows),
            _endpoint(client, rows),
            _type("event_type"),
            _state(delivery_state, least=len("pending/receiver")),
            _tries(),
            _answer(),
            Column("WHEN", lambda row: _when(row, times)),
        ]

    return columns


def dead_columns(client: "Client", *, utc: bool) -> Columns:
    """Dead letters."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        return [
            _id(rows),
            _endpoint(client, rows),
            _type("event_type"),
            Column("REASON", lambda row: row["reason"] or "", colour=lambda _: BAD),
            _tries(),
            _answer(),
            _time("DIED", "dead_at", times),
        ]

    return columns


def replayed_columns(client: "Client", *, utc: bool) -> Columns:
    """Replayed deliveries that are not delivered yet."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        return [
            _id(rows),
            _endpoint(client, rows),
            _type("event_type"),
            Column("REASON", lambda row: (row["last_death"] or {}).get("reason") or ""),
            _number("REPLAYS", "replays"),
            _state(delivery_state, least=len("pending/receiver")),
            Column("DIED", lambda row: times.show((row["last_death"] or {}).get("at"))),
        ]

    return columns


def event_columns(*, utc: bool) -> Columns:
    """Events with the states of their deliveries."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            _id(rows),
            _type("type", rank=0),
            Column("ACCOUNT", lambda row: row["account"], least=_NAME_LEAST, rank=1),
            _time("PUBLISHED", "created_at", Times(utc=utc)),
            Column("DELIVERIES", _counts, least=_COUNTS_LEAST, colour=_counts_colour),
        ]

    return columns


def attempt_columns(*, utc: bool) -> Columns:
    """Attempts of several deliveries."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            _id(rows, "DELIVERY", "delivery_id"),
            _number("TRY", "number"),
            Column("ANSWER", answer_of, least=_NAME_LEAST, colour=answer_colour),
            Column("TOOK", lambda row: took(row["duration_ms"]), is_number=True),
            _time("AT", "at", Times(utc=utc)),
            Column(
                "URL",
                lambda row: short_url(row["request"]["url"] or ""),
                least=_URL_LEAST,
                is_cut_inside=True,
            ),
        ]

    return columns


def endpoint_columns(rows: Sequence[Row]) -> list[Column]:
    """Endpoints."""
    return [
        _id(rows),
        Column("URL", lambda row: short_url(row["url"]), least=_URL_LEAST, is_cut_inside=True),
        Column("EVENTS", lambda row: ", ".join(row["events"]), least=_NAME_LEAST),
        Column("ACCOUNT", lambda row: row["account"], least=_NAME_LEAST, rank=1),
        _state(endpoint_state, least=_WORDS_LEAST),
    ]


def event_type_columns(*, utc: bool) -> Columns:
    """Described event types."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            Column("NAME", lambda row: row["name"], least=2 * _WORDS_LEAST),
            Column("DESCRIPTION", lambda row: row["description"] or "", least=_WORDS_LEAST),
            Column("SCHEMA", lambda row: "yes" if row["schema"] is not None else "no"),
            _time("CHANGED", "updated_at", Times(utc=utc)),
        ]

    return columns


def key_columns(*, utc: bool) -> Columns:
    """API keys."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)

        def state(row: Row) -> str:
            return "active" if row["revoked_at"] is None else f"revoked {times.show(row['revoked_at'])}"

        return [
            _id(rows),
            Column("NAME", lambda row: row["name"], least=_NAME_LEAST),
            Column("BEGINS", lambda row: row["hint"]),
            Column("SCOPES", lambda row: ", ".join(row["scopes"]), least=_NAME_LEAST),
            Column("ACCOUNT", lambda row: row["account"] or "all", least=_NAME_LEAST),
            _time("CREATED", "created_at", times),
            _state(state, least=_NAME_LEAST),
        ]

    return columns


def job_columns(*, utc: bool) -> Columns:
    """Bulk replays and discards."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        return [
            _id(rows),
            _state(lambda row: row["state"]),
            _number("MATCHED", "matched"),
            _number("DONE", "done"),
            _number("SKIPPED", "failed"),
            _time("STARTED", "created_at", times),
            _time("ENDED", "finished_at", times),
            Column("REASON", lambda row: row["reason"] or "", least=_NAME_LEAST),
        ]

    return columns


def alert_columns(*, utc: bool) -> Columns:
    """Alerts. The message wants the most room."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            Column("KIND", lambda row: row["kind"], least=_WORDS_LEAST),
            _state(lambda row: row["state"]),
            _time("SINCE", "since", Times(utc=utc)),
            Column("MESSAGE", lambda row: row["message"], least=2 * _URL_LEAST),
        ]

    return columns


def worker_columns(*, utc: bool) -> Columns:
    """Processes that publish or deliver."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            _id(rows),
            Column("HOST", lambda row: row["host"], least=_NAME_LEAST),
            Column("PID", lambda row: str(row["pid"]), is_number=True),
            _state(lambda row: row["state"]),
            Column("KIND", lambda row: row["kind"], rank=1),
            _number("LANES", "lanes"),
            _number("IN FLIGHT", "in_flight"),
            Column("PER SECOND", lambda row: f"{row['delivered_per_s']:,.1f}", is_number=True),
            _time("HEARTBEAT", "heartbeat_at", Times(utc=utc)),
        ]

    return columns


def refused_columns(*, utc: bool) -> Columns:
    """Rows of outboxes that were refused."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        return [
            _id(rows),
            _type("type", rank=0),
            Column("ACCOUNT", lambda row: row["account"], least=_NAME_LEAST, rank=2),
            Column("OUTBOX", lambda row: row["source"], least=_NAME_LEAST, rank=1),
            Column("CODE", lambda row: row["code"], least=_WORDS_LEAST, colour=lambda _: BAD),
            _time("REFUSED", "refused_at", Times(utc=utc)),
            Column("WHY", lambda row: row["detail"], least=_NAME_LEAST, rank=3),
        ]

    return columns


def outbox_columns(*, utc: bool) -> Columns:
    """Outboxes."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        return [
            Column("OUTBOX", lambda row: row["name"], least=_URL_LEAST, is_cut_inside=True),
            _state(lambda row: row["state"]),
            Column("WAITING", lambda row: _many(row["waiting"]), is_number=True),
            Column("OLDEST", lambda row: _span(row["oldest_age_s"]), is_number=True),
            _time("READ", "looked_at", times),
            _time("CLEAR", "clear_at", times),
            Column("WHY", lambda row: row["detail"] or "", least=_NAME_LEAST, rank=1),
        ]

    return columns


def _many(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _span(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:,.0f} s"


def audit_columns(*, utc: bool) -> Columns:
    """Entries of the audit trail."""

    def columns(rows: Sequence[Row]) -> list[Column]:
        times = Times(utc=utc)
        short = ShortIds(row["subject"]["id"] for row in rows if _is_id(row["subject"]))
        return [
            _time("WHEN", "at", times),
            Column("ACTION", lambda row: row["action"], least=_WORDS_LEAST),
            Column("SUBJECT", lambda row: _subject(row["subject"], short), least=_WORDS_LEAST),
            Column("WHO", actor_text, least=_NAME_LEAST),
            Column("VIA", lambda row: row["via"], rank=2),
            Column("FROM", lambda row: row["address"] or "", least=_NAME_LEAST, rank=1),
            Column("CHANGES", lambda row: _changed(row), least=_NAME_LEAST),
        ]

    return columns


def actor_text(row: Row) -> str:
    """Who did it: a key by its name, a person by the name of the user, or what they acted with."""
    actor = row["actor"]
    named = actor["name"] or actor["hint"] or ""
    match actor["kind"]:
        case "portal":
            return f"portal ({named})" if named else "portal"
        case "key":
            return named or "an operator"
    return named or str(actor["kind"]).replace("_", " ")


def _is_id(subject: Row) -> bool:
    return subject["kind"] in ("endpoint", "event", "delivery", "replay", "discard", "key")


def _subject(subject: Row, short: ShortIds) -> str:
    return short.show(subject["id"]) if _is_id(subject) else str(subject["id"])


def _changed(row: Row) -> str:
    """The fields; their values are in the JSON."""
    return ", ".join(row["changes"]) + (" …" if row["truncated"] else "")


def delivery_state(row: Row) -> str:
    """The state of a delivery, and what a pending one waits for."""
    if row["state"] != "pending":
        return str(row["state"])
    if row["in_flight"]:
        return "sending"
    return "pending" if row["waiting_for"] in (None, "due") else f"pending/{row['waiting_for']}"


def endpoint_state(row: Row) -> str:
    """What keeps an endpoint from getting its events, or that nothing does."""
    circuit = row["circuit_state"]["state"].replace("_", " ")
    found = [
        word
        for word, applies in (
            ("disabled", not row["enabled"]),
            ("invalid", bool(row["problems"])),
            ("paused", row["paused"]),
            (f"circuit {circuit}", circuit != "closed"),
            ("slow", row["slow"]),
        )
        if applies
    ]
    return ", ".join(found) or "active"


def answer_of(row: Row) -> str:
    """The receiver's answer to an attempt, or why there was none."""
    return str(row["status"] or (row["error"] or {}).get("kind") or "")


def answer_of_delivery(row: Row) -> str:
    """The receiver's last answer to a delivery, or why there was none."""
    error: dict[str, Any] = row["last_error"] or {}
    return str(row["last_status"] or error.get("kind") or "")


def answer_colour(row: Row) -> str | None:
    """Whether the answer was good."""
    return BAD if row["error"] else GOOD


def took(milliseconds: float | None) -> str:
    """How long a request took."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:,.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"


def short_url(url: str) -> str:
    """The URL without what all begin with."""
    return url.removeprefix("https://").removeprefix("http://")


def colour_of(state: str) -> str | None:
    """The colour of a state; of several, that of the first."""
    words = state.partition(",")[0].partition("/")[0]
    return _COLOURS.get(words) or _COLOURS.get(words.partition(" ")[0])


def _id(rows: Sequence[Row], name: str = "ID", field: str = "id") -> Column:
    short = ShortIds(row[field] for row in rows)
    return Column(name, lambda row: short.show(row[field]))


def _endpoint(client: "Client", rows: Sequence[Row]) -> Column:
    short = ShortIds(row["endpoint_id"] for row in rows)
    urls = EndpointUrls(client)

    def text(row: Row) -> str:
        url = urls.of(row["endpoint_id"])
        return f"{short.show(row['endpoint_id'])} (deleted)" if url is None else short_url(url)

    return Column("ENDPOINT", text, least=_URL_LEAST, is_cut_inside=True)


def _type(field: str, *, rank: int = 2) -> Column:
    return Column("TYPE", lambda row: row[field], least=_WORDS_LEAST, rank=rank)


def _tries() -> Column:
    return Column("TRIES", lambda row: f"{row['attempts']:,}", is_number=True, rank=1)


def _state(text: Callable[[Row], str], *, least: int = _WORDS_LEAST) -> Column:
    return Column("STATE", text, least=least, colour=lambda row: colour_of(text(row)))


def _number(name: str, field: str) -> Column:
    return Column(name, lambda row: f"{row[field]:,}", is_number=True)


def _time(name: str, field: str, times: Times) -> Column:
    return Column(name, lambda row: times.show(row[field]))


def _answer() -> Column:
    return Column(
        "ANSWER",
        answer_of_delivery,
        least=_NAME_LEAST,
        colour=lambda row: BAD if row["last_error"] else None,
    )


def _when(row: Row, times: Times) -> str:
    if row["state"] != "pending":
        return times.show(row["delivered_at"] or row["dead_at"])
    due = times.show(row["due_at"])
    return f"due {due}" if due.endswith("ago") else due


def _counts(row: Row) -> str:
    counts = row["deliveries"]
    worst_first = ("dead", "pending", "delivered", "cancelled")
    return ", ".join(f"{counts[state]:,} {state}" for state in worst_first if counts[state]) or "none"


def _counts_colour(row: Row) -> str | None:
    counts = row["deliveries"]
    if counts["dead"]:
        return BAD
    return DOUBTFUL if counts["pending"] else GOOD if counts["delivered"] else None
