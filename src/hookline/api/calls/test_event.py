"""Answers the call that sends a test event to an endpoint."""

from hookline.admin.test_event import TestReport
from hookline.api.call import Answered, Call, CallRequest, CallScope, Nothing
from hookline.app import Hookline


class TrialCalls:
    """The call `POST /v1/endpoints/{endpoint_id}/test`."""

    def __init__(self, hookline: Hookline) -> None:
        self._trial = hookline.trial

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="POST",
                path="/v1/endpoints/{endpoint_id}/test",
                summary="Test an endpoint: send a test event to this endpoint only",
                scope=CallScope.ADMIN,
                handler=self.send,
                body=Nothing,
                answer=TestReport,
                status=202,
                problems=("wrong_state",),
            )
        ]

    async def send(self, asked: CallRequest[Nothing, Nothing]) -> Answered:
        sent = await self._trial.send(asked.endpoint_id)
        return Answered(sent, {"location": f"/v1/deliveries/{sent.id}"})
