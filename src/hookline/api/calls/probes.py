"""Tells load balancers whether the process is alive and ready."""

from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.app import Hookline
from hookline.errors import NotReady
from hookline.reports.views import StatusReport


class ProbeCalls:
    """The calls of load balancers and supervisors. They answer only ok or not."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline

    def table(self) -> list[Call]:
        """The calls."""
        return [
            Call(
                method="GET",
                path="/healthz",
                summary="Check that the process is running",
                scope=CallScope.OPEN,
                handler=self.healthz,
                answer=StatusReport,
            ),
            Call(
                method="GET",
                path="/readyz",
                summary="Check that the process is ready to serve",
                scope=CallScope.OPEN,
                handler=self.readyz,
                answer=StatusReport,
            ),
        ]

    async def healthz(self, asked: CallRequest[Nothing, None]) -> StatusReport:
        return StatusReport("ok")

    async def readyz(self, asked: CallRequest[Nothing, None]) -> StatusReport:
        if (why := await self._hookline.not_ready()) is not None:
            raise NotReady(why)
        return StatusReport("ok")
