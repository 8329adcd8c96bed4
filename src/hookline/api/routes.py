"""Which calls does the API answer beside publishing?"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline.api import calls
from hookline.api.calls import Pages
from hookline.api.cursor import Cursors
from hookline.api.dead_letters import DeadLetterCalls, JobCalls
from hookline.api.deliveries import DeliveryCalls
from hookline.api.endpoints import EndpointCalls
from hookline.app import Hookline
from hookline.errors import StoreUnavailable
from hookline.reports import Reports
from hookline.store.contract import JobKind


class Routes:
    """All calls, by what they are about."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline
        shown = Reports(hookline.store, hookline.worker, default_retry=hookline.settings.retry)
        pages = Pages(Cursors(hookline.settings.api_key))
        deliveries = DeliveryCalls(hookline, shown, pages)
        self._calls = (
            EndpointCalls(hookline, shown, pages),
            deliveries,
            DeadLetterCalls(hookline, deliveries),
            JobCalls(hookline, pages, kind=JobKind.REPLAY),
            JobCalls(hookline, pages, kind=JobKind.DISCARD),
        )

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            calls.route("/healthz", GET=self.healthz),
            calls.route("/readyz", GET=self.readyz),
            *(route for part in self._calls for route in part.table()),
        ]

    async def healthz(self, request: Request) -> Response:
        """The process is there."""
        calls.query(request)
        return calls.json({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """The process can do its work."""
        calls.query(request)
        if not self._hookline.is_ready:
            raise StoreUnavailable("not ready")
        return calls.json({"status": "ok"})
