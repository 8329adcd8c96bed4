"""Answers the call that finds ids by their beginning."""

from hookline.api.call import Call, CallRequest, CallScope, Nothing
from hookline.api.request.query import invalid
from hookline.app import Hookline
from hookline.reports.id_prefixes import CANDIDATES, checked_prefix, ids_beginning
from hookline.reports.views import IdsReport

_LISTED_ELSEWHERE = {
    "attempt": "an attempt: /v1/deliveries/{delivery_id}/attempts",
    "audit": "an entry of the audit trail: /v1/audit",
    "key": "a key: /v1/keys",
}


class IdCalls:
    """The call `/v1/ids/{prefix}`."""

    def __init__(self, hookline: Hookline) -> None:
        self._store = hookline.store

    def table(self) -> list[Call]:
        """The call."""
        return [
            Call(
                method="GET",
                path="/v1/ids/{prefix}",
                summary=f"List the ids that begin with a prefix, up to {CANDIDATES}",
                scope=CallScope.READ,
                handler=self.find,
                answer=IdsReport,
                problems=("invalid_parameter",),
                for_accounts=True,
            )
        ]

    async def find(self, asked: CallRequest[Nothing, None]) -> IdsReport:
        prefix = checked_prefix(asked.part("prefix"))
        if (where := _LISTED_ELSEWHERE.get(prefix.noun)) is not None:
            raise invalid("prefix", f"cannot be that of {where} lists them")
        found = await ids_beginning(self._store, prefix, account=asked.account)
        return IdsReport(data=found[:CANDIDATES], has_more=len(found) > CANDIDATES)
