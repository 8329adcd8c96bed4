"""Shows the processes that publish and deliver."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookline.api.inside import CallersApi
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown

_MOST = 200

Parts = dict[str, tuple[str, Mapping[str, Any]]]


class WorkerPages:
    """The list of workers, and what is live on it."""

    def __init__(self) -> None:
        self.live = {"workers": self.live_parts}

    def routes(self) -> Sequence[PageRoute]:
        """The page."""
        return [PageRoute("GET", "/workers", self.show, for_accounts=False)]

    async def show(self, asked: Asked) -> Answer:
        """Who works?"""
        parts = await self.live_parts(asked.api, asked.visitor.account, asked.now)
        data = {name: value for _, each in parts.values() for name, value in each.items()}
        return Shown(
            template="workers.html", title=data["headline"], data=data, nav="workers", live="workers"
        )

    async def live_parts(self, api: CallersApi, account: str | None, now: float) -> Parts:
        """The regions of the page that change by themselves."""
        found = await api.get("/v1/workers", {"limit": str(_MOST)})
        headline, sub = _headline(found.data)
        return {
            "workers-head": ("parts/workers_head.html", {"headline": headline, "sub": sub}),
            "workers-list": (
                "parts/workers_list.html",
                {"all_workers": found.data, "has_more": found.next_cursor is not None},
            ),
        }


def _headline(workers: Sequence[Any]) -> tuple[str, str]:
    running = [each for each in workers if each.state == "running"]
    delivering = [each for each in running if each.kind != "api"]
    stale = [each for each in workers if each.state == "stale"]
    if not delivering:
        return "No worker runs: nothing is being sent", "Start one: hookline worker"
    lanes = sum(each.lanes for each in delivering)
    one = len(delivering) == 1
    owned = words.counted(lanes, "lane") if lanes else "no lane now"
    said = f"{words.counted(len(delivering), 'worker')} {'runs and owns' if one else 'run and own'} {owned}"
    under_way = sum(each.in_flight for each in delivering)
    rate = sum(each.delivered_per_s for each in delivering)
    sub = f"{words.counted(under_way, 'request')} under way, {words.number(rate)} delivered a second."
    if stale:
        sub += f" {words.counted(len(stale), 'worker')} fell silent; others take over the lanes."
    return said, sub
