"""Answers the calls that read and rotate an endpoint's secrets."""

from typing import Annotated, Any

import msgspec

from hookline.admin.secrets import RotationInput, SecretReport
from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.request.parameters import null_or
from hookline.app import Hookline
from hookline.model import Signature
from hookline.rules.rotation import DEFAULT_OVERLAP_S, LONGEST_OVERLAP_S


class RotationOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A rotation of a secret. Both secrets sign for `overlap_s` seconds (one day by default)."""

    overlap_s: Annotated[
        Any,
        null_or(
            {"type": "integer", "minimum": 0, "maximum": LONGEST_OVERLAP_S, "default": DEFAULT_OVERLAP_S}
        ),
    ] = None
    secret: Annotated[Any, null_or({"type": "string"})] = None
    signature: Annotated[Any, null_or({"type": "string", "enum": list(Signature)})] = None


class SecretCalls:
    """The calls under `/v1/endpoints/{endpoint_id}/secret`."""

    def __init__(self, hookline: Hookline) -> None:
        self._rotation = hookline.rotation

    def table(self) -> list[Call]:
        """The calls."""
        secret = "/v1/endpoints/{endpoint_id}/secret"  # noqa: S105 - a path
        return [
            Call(
                method="GET",
                path=secret,
                summary="Get an endpoint's secrets",
                scope=CallScope.ADMIN,
                handler=self.show,
                answer=SecretReport,
            ),
            Call(
                method="POST",
                path=f"{secret}/rotate",
                summary="Rotate an endpoint's secret; both secrets sign during the overlap",
                scope=CallScope.ADMIN,
                handler=self.rotate,
                body=RotationOrder,
                example={"overlap_s": 3_600},
                answer=SecretReport,
                problems=("wrong_state",),
            ),
        ]

    async def show(self, asked: CallRequest[Nothing, None]) -> SecretReport:
        return await self._rotation.read(asked.endpoint_id)

    async def rotate(self, asked: CallRequest[Nothing, RotationOrder]) -> SecretReport:
        order = asked.body
        return await self._rotation.rotate(
            asked.endpoint_id,
            RotationInput(overlap_s=order.overlap_s, secret=order.secret, signature=order.signature),
        )
