"""Answers the call that creates a portal link."""

import re
from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from hookline.admin.portal import (
    EXPIRES_IN_S,
    LEAST_EXPIRES_IN_S,
    LEAST_VISIT_S,
    MOST_EXPIRES_IN_S,
    MOST_VISIT_S,
    VISIT_S,
    PortalLinkReport,
)
from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.request.parameters import null_or
from hookline.app import Hookline

_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_EXPIRES_IN = {
    "type": "integer",
    "minimum": LEAST_EXPIRES_IN_S,
    "maximum": MOST_EXPIRES_IN_S,
    "default": EXPIRES_IN_S,
    "description": "how long the link can be opened",
}
_VISIT = {
    "type": "integer",
    "minimum": LEAST_VISIT_S,
    "maximum": MOST_VISIT_S,
    "default": VISIT_S,
    "description": "how long the visit may last that it opens",
}
_MAY_ACT = {
    "type": "boolean",
    "default": True,
    "description": "whether the visitor may change things, or only look",
}


class PortalLinkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a portal link allows."""

    expires_in_s: Annotated[Any, null_or(_EXPIRES_IN)] = None
    visit_s: Annotated[Any, null_or(_VISIT)] = None
    may_act: Annotated[Any, null_or(_MAY_ACT)] = None


class PortalLinkCalls:
    """The call `/v1/accounts/{account}/portal-link`."""

    def __init__(self, hookline: Hookline) -> None:
        self._portal = hookline.portal

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="POST",
                path="/v1/accounts/{account}/portal-link",
                summary="Create a link that opens one visit to an account's portal; only this response shows it",
                scope=CallScope.ADMIN,
                handler=self.mint,
                body=PortalLinkOrder,
                example={"expires_in_s": 60},
                answer=PortalLinkReport,
                status=201,
            )
        ]

    async def mint(self, asked: CallRequest[Nothing, PortalLinkOrder]) -> PortalLinkReport:
        given = {name: value for name, value in asked.fields.items() if value is not None}
        return await self._portal.mint(
            asked.part("account"),
            key_digest=asked.key_digest,
            reached_at=_reached_at(asked.request),
            **given,
        )


def _reached_at(request: Request) -> str:
    """The server as this request reached it; by its address if the Host header cannot be part of a URL."""
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        name, port = request.scope["server"]
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{request.scope['scheme']}://{host}"
