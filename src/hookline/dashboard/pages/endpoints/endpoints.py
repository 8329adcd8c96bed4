"""Lists the endpoints, the worst first."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from hookline import ids
from hookline.app import Hookline
from hookline.dashboard.look import figures, words
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown
from hookline.model import WorkerId
from hookline.reports.endpoint_board import MOST_ROWS, BoardPage, BoardRow
from hookline.validate.suggest import nearest

PAGE = 50
SORTS = (
    ("worst", "Worst first"),
    ("accepted", "Least accepted first"),
    ("slowest", "Slowest first"),
    ("waiting", "Most waiting"),
    ("dead", "Most dead"),
    ("url", "URL"),
)
CHIPS = ("failing", "slow", "paused", "disabled")
_FILTERS = ("q", "account", "event_type", "state", "worker")
_BAD_BELOW = 0.9  # of the attempts of an hour
_HOUR_S = 3_600.0


class EndpointsPages:
    """The list of endpoints."""

    def __init__(self, hookline: Hookline) -> None:
        self._board = hookline.board

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [PageRoute("GET", "/endpoints", self.show)]

    async def show(self, asked: Asked) -> Answer:
        """Which one?"""
        given = {name: asked.query.get(name, "").strip() for name in (*_FILTERS, "sort")}
        if asked.visitor.account is not None:
            given["account"] = given["worker"] = ""  # of the installation
        given["sort"] = "" if given["sort"] == SORTS[0][0] else given["sort"]
        page, offset = await self._page(asked, given)
        is_filtered = any(given[name] for name in _FILTERS)
        data = {
            "given": given,
            "page": page,
            "is_new": page.total == 0 and not is_filtered,
            "is_filtered": is_filtered,
            "rows": [_row(each, spark_since=page.spark_since) for each in page.rows],
            "chips": _chips(given, page),
            "sorts": SORTS,
            "sort_said": dict(SORTS)[given["sort"] or SORTS[0][0]],
            "offset": offset,
            "next": _link(given, offset=offset + PAGE) if offset + PAGE < page.matching else "",
            "before": _link(given, offset=max(0, offset - PAGE)) if offset else "",
            "ways_out": [] if page.rows or not is_filtered else await self._ways_out(asked, given),
        }
        title = _title(page, given, is_filtered=is_filtered, is_own=asked.visitor.account is not None)
        return Shown(template="endpoints.html", title=title, data=data, nav="endpoints")

    async def _page(self, asked: Asked, given: Mapping[str, str]) -> tuple[BoardPage, int]:
        text = asked.query.get("offset", "")
        offset = int(text) if text.isdecimal() and len(text) < 10 else 0
        while True:
            page = await self._board.page(
                asked.visitor.account or given["account"] or None,
                state=given["state"] or None,
                q=given["q"],
                event_type=given["event_type"] or None,
                worker=WorkerId(ids.read("worker", given["worker"])) if given["worker"] else None,
                sort=given["sort"] or SORTS[0][0],
                offset=offset,
                limit=PAGE,
            )
            if page.rows or not offset:
                return page, offset
            offset = max(0, page.matching - 1) // PAGE * PAGE  # the last page: some were deleted meanwhile

    async def _ways_out(self, asked: Asked, given: Mapping[str, str]) -> list[tuple[str, str, str]]:
        """What else could be looked at: the kind of way, its link and its words."""
        found = []
        if given["q"]:
            rows = (await self._board.page(asked.visitor.account, limit=MOST_ROWS)).rows
            names = {name for each in rows for name in (words.host(each.url), words.short_url(each.url))}
            meant = nearest(words.short_url(given["q"]), sorted(names))
            if meant is not None:
                href = _link({"q": meant})
                found.append(("meant", href, meant))
        last = [name for name in _FILTERS if given[name]]
        if len(last) > 1:
            labels = {
                "q": "text",
                "account": "account",
                "event_type": "event type",
                "state": "state",
                "worker": "worker",
            }
            found += [("without", _link({**given, name: ""}), labels[name]) for name in last]
        found.append(("all", "/endpoints", "all endpoints"))
        return found


def _title(page: BoardPage, given: Mapping[str, str], *, is_filtered: bool, is_own: bool) -> str:
    total = words.counted(page.total, "endpoint")
    if is_filtered:
        alone = [name for name in _FILTERS if given[name] and name != "account"]
        if not alone:
            return f"{words.counted(page.matching, 'endpoint')} of account {given['account'][:64]}"
        of = f"{page.matching:,} of {'your ' if is_own else ''}{total}"
        verb = "is" if page.matching == 1 else "are"
        if alone == ["worker"]:
            return f"{of} {'has its lane' if page.matching == 1 else 'have their lanes'} in this worker"
        if alone == ["state"]:
            if given["state"] == "dead":
                return f"{of} {'has' if page.matching == 1 else 'have'} dead letters"
            return f"{of} {verb} {given['state']}"
        return f"{of} {'matches' if page.matching == 1 else 'match'}"
    if page.total == 0:
        return "You have no endpoint yet" if is_own else "No endpoint yet"
    troubles = [
        f"{count:,} {'is' if count == 1 else 'are'} {state}"
        for state, count in (("failing", page.counts.failing), ("slow", page.counts.slow))
        if count
    ]
    return f"{'Your ' if is_own else ''}{total}: {', '.join(troubles) or 'none is failing'}"


def _chips(given: Mapping[str, str], page: BoardPage) -> list[Mapping[str, Any]]:
    """A state and its count; a chip leads to as many endpoints as it says, so it drops what else is searched."""
    kept = {name: given[name] for name in ("account", "sort")}
    chips: list[Mapping[str, Any]] = [
        {
            "href": _link(kept),
            "text": f"All {page.counts.all:,}",
            "look": None,
            "is_chosen": not given["state"],
        }
    ]
    for state in CHIPS:
        count = getattr(page.counts, state)
        look = words.ENDPOINT_STATES[state]
        if count == 0:
            look = look._replace(tone="idle")  # nothing is red for 0
        chips.append(
            {
                "href": _link({**kept, "state": state}),
                "text": f"{look.word} {count:,}",
                "look": look,
                "is_chosen": given["state"] == state,
            }
        )
    chips.append(
        {
            "href": _link({**kept, "state": "dead"}),
            "text": f"With dead letters {page.counts.dead:,}",
            "look": None,
            "is_chosen": given["state"] == "dead",
        }
    )
    return chips


def _row(row: BoardRow, *, spark_since: float) -> Mapping[str, Any]:
    rate = row.accepted_1h / row.attempts_1h if row.attempts_1h else None
    total = sum(bar.attempts for bar in row.spark)
    failed = total - sum(bar.accepted for bar in row.spark)
    drawn = f"{words.counted(total, 'attempt')} in 24 h, {failed:,} failed" if total else "No attempt in 24 h"
    answer, answered_at, is_now = _last_answer(row, spark_since=spark_since)
    return {
        "endpoint": row,
        "look": words.ENDPOINT_STATES[row.state],
        "rate": rate,
        "is_bad": rate is not None and (row.state == "failing" or rate < _BAD_BELOW),
        "is_p95_due": row.p95_24h is None and row.attempts_1h > 0,  # it is added up every 15 minutes
        "p95_ms": None if row.p95_24h is None else row.p95_24h * 1_000,
        "waits_for": _waits_for(row),
        "answer": answer,
        "answered_at": answered_at,
        "is_this_hour": is_now,
        "spark": figures.spark(
            [figures.Bar(bar.attempts, bar.attempts - bar.accepted) for bar in row.spark], drawn
        ),
    }


def _last_answer(row: BoardRow, *, spark_since: float) -> tuple[str, float | None, bool]:
    """What came of the latest attempts, when, and whether that is the hour that is not over yet.

    A circuit remembers moments only while there is trouble; the hour of the last attempts is always known.
    """
    success, failure = row.last_success_at or 0.0, row.last_failure_at or 0.0
    hours = [n for n, bar in enumerate(row.spark) if bar.attempts]
    last = hours[-1] if hours else None
    hour = 0.0 if last is None else spark_since + last * _HOUR_S
    if max(success, failure) > hour:
        return ("accepted" if success >= failure else "failed"), max(success, failure), False
    if last is None:
        return "", None, False
    bar = row.spark[last]
    answer = "accepted" if bar.accepted == bar.attempts else "some failed" if bar.accepted else "failed"
    return answer, hour + _HOUR_S, last == len(row.spark) - 1


def _waits_for(row: BoardRow) -> str:
    if not row.enabled:
        return "while disabled"
    if row.paused:
        return "while paused"
    return "for its circuit" if row.circuit != "closed" else ""


def _link(given: Mapping[str, str], *, offset: int = 0) -> str:
    query = {name: value for name, value in given.items() if value}
    if offset:
        query["offset"] = str(offset)
    return "/endpoints" + (f"?{urlencode(query)}" if query else "")
