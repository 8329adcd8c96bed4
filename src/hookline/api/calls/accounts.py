"""Answers the calls about the settings of accounts."""

import math
from typing import Annotated, Any

import msgspec

from hookline.admin.accounts import AccountReport, AlertTestReport
from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.problem import Refused
from hookline.api.request.parameters import null_or
from hookline.app import Hookline
from hookline.rules.destination import MAX_URL_BYTES
from hookline.validate.names import EMAIL_LIMIT

TESTS_APART_S = 5.0  # of one account: a test sends mail to whomever its key names

_URL = {"type": ["string", "null"], "maxLength": MAX_URL_BYTES}
_NOTIFY = {
    "title": "NotifyInput",
    "type": "object",
    "properties": {
        "email": {
            "type": ["string", "null"],
            "maxLength": EMAIL_LIMIT,
            "description": "one address",
        },
        "webhook": {**_URL, "description": "alerts are posted to it as JSON"},
        "slack": {**_URL, "description": "an incoming webhook of Slack or of a chat that accepts the same"},
    },
    "additionalProperties": False,
    "description": (
        "Where the account is told of trouble; a channel that is missing is removed. A URL as the answer shows it, "
        "with `/***` after the host, keeps the stored one."
    ),
}


class AccountSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an account; replaces the earlier ones."""

    notify: Annotated[Any, null_or(_NOTIFY)] = None


class AccountCalls:
    """The calls under `/v1/accounts`."""

    def __init__(self, hookline: Hookline) -> None:
        self._accounts = hookline.accounts
        self._clock = hookline.clock
        self._tested: dict[str, float] = {}  # when an account's channels were tested, on the monotonic clock

    def table(self) -> list[Call]:
        """The calls."""
        one = "/v1/accounts/{account}"
        return [
            Call(
                method="GET",
                path=one,
                summary="Get an account's settings; every name is an account",
                scope=CallScope.READ,
                handler=self.show,
                answer=AccountReport,
            ),
            Call(
                method="PUT",
                path=one,
                summary="Update where an account is told of trouble",
                scope=CallScope.ADMIN,
                handler=self.put,
                body=AccountSettings,
                example={"notify": {"email": "ops@acme.example"}},
                answer=AccountReport,
                problems=("url_invalid", "url_forbidden"),
            ),
            Call(
                method="POST",
                path=f"{one}/test-alert",
                summary="Test an account's channels: send a test alert on each and show the answers",
                scope=CallScope.ADMIN,
                handler=self.test,
                body=Nothing,
                answer=AlertTestReport,
            ),
        ]

    async def show(self, asked: CallRequest[Nothing, None]) -> AccountReport:
        return await self._accounts.read(asked.part("account"))

    async def put(self, asked: CallRequest[Nothing, AccountSettings]) -> AccountReport:
        return await self._accounts.put(asked.part("account"), asked.fields)

    async def test(self, asked: CallRequest[Nothing, Nothing]) -> AlertTestReport:
        account = asked.part("account")
        now = self._clock.monotonic()
        wait = self._tested.get(account, -TESTS_APART_S) + TESTS_APART_S - now
        if wait > 0:
            raise Refused(
                "rate_limited",
                f"The channels of this account were tested a moment ago. Try again in {math.ceil(wait)} s.",
                headers=((b"retry-after", b"%d" % math.ceil(wait)),),
            )
        self._tested[account] = now
        is_sent = False
        try:
            report = await self._accounts.test(account)
            is_sent = bool(report.results)
        finally:
            if not is_sent:
                self._tested.pop(account, None)  # and any name may be given
        return report
