"""How is said over HTTP what an account wants?"""

from typing import Annotated, Any

import msgspec

from hookline.admin.accounts import MAX_EMAIL, AccountReport
from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.request.parameters import null_or
from hookline.app import Hookline

_NOTIFY = {
    "type": "object",
    "properties": {
        "email": {"type": ["string", "null"], "maxLength": MAX_EMAIL},
        "webhook": {"type": ["string", "null"]},
        "slack": {"type": ["string", "null"], "pattern": r"^https://hooks\.slack"},
    },
    "additionalProperties": False,
}


class AccountOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about an account, in place of what was said before."""

    notify: Annotated[Any, null_or(_NOTIFY)] = None


class AccountCalls:
    """The calls under `/v1/accounts`."""

    def __init__(self, hookline: Hookline) -> None:
        self._accounts = hookline.accounts

    def table(self) -> list[Call]:
        """The calls."""
        one = "/v1/accounts/{account}"
        return [
            Call(
                method="GET",
                path=one,
                summary="An account; one that nothing was said about is there all the same",
                scope=CallScope.ADMIN,  # where it is notified can be a credential
                handler=self.show,
                answer=AccountReport,
            ),
            Call(
                method="PUT",
                path=one,
                summary="Say where an account wants to be told about trouble",
                scope=CallScope.ADMIN,
                handler=self.put,
                body=AccountOrder,
                answer=AccountReport,
                problems=("url_invalid", "url_forbidden"),
            ),
        ]

    async def show(self, asked: CallRequest[Nothing, None]) -> AccountReport:
        return await self._accounts.read(asked.part("account"))

    async def put(self, asked: CallRequest[Nothing, AccountOrder]) -> AccountReport:
        return await self._accounts.put(asked.part("account"), asked.fields)
