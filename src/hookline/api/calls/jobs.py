"""Answers the calls that replay and discard dead letters in bulk."""

from typing import Annotated, Any

import msgspec

from hookline import ids
from hookline.api.call import Answered, Call, CallRequest, CallScope, Nothing, Page, Paged
from hookline.api.request.parameters import ACCOUNT_SCHEMA, MOMENT_SCHEMA, TYPE_SCHEMA, id_schema
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.errors import AccountMismatch, NotFound
from hookline.model import JobId
from hookline.reports import queries
from hookline.reports.views import JobReport
from hookline.store.contract import JobKind
from hookline.validate.api_schema import or_null
from hookline.validate.dead_letter_filter import MOST_IDS, REASONS, Chosen, chosen

_FIELDS: dict[str, dict[str, Any]] = {
    "account": ACCOUNT_SCHEMA,
    "endpoint_id": id_schema("endpoint"),
    "event_type": TYPE_SCHEMA,
    "reason": {"type": "string", "enum": [reason.value for reason in REASONS]},
    "since": MOMENT_SCHEMA,
    "until": MOMENT_SCHEMA,
    "ids": {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_IDS,
        "items": id_schema("delivery"),
        "description": "cannot be combined with other fields",
    },
}
_FILTER = {
    "title": "DeadLetterFilter",
    "type": "object",
    "minProperties": 1,
    "properties": {name: or_null(schema) for name, schema in _FIELDS.items()},
    "additionalProperties": False,
}


class JobOrder(msgspec.Struct, frozen=True):
    """The dead letters of a bulk job. With `dry_run` they are only counted."""

    filter: Annotated[Any, msgspec.Meta(extra_json_schema=_FILTER)]
    dry_run: bool | None = None


class JobCalls:
    """The calls under `/v1/replays` or `/v1/discards`."""

    def __init__(self, hookline: Hookline, pages: Pages, *, kind: JobKind) -> None:
        self._admin = hookline.dead_letters
        self._store = hookline.store
        self._clock = hookline.clock
        self._pages = pages
        self._kind = kind
        self._path = f"/v1/{kind.value}s"

    def table(self) -> list[Call]:
        """The calls."""
        noun = f"bulk {self._kind.value}"
        return [
            Call(
                method="GET",
                path=self._path,
                summary=f"List {noun}s",
                scope=CallScope.READ,
                handler=self.list_jobs,
                query=Paged,
                answer=Page[JobReport],
                for_accounts=True,
            ),
            Call(
                method="POST",
                path=self._path,
                summary=f"Start a {noun} of dead letters",
                scope=CallScope.ADMIN,
                handler=self.start,
                body=JobOrder,
                example={"filter": {"account": "acme", "reason": "exhausted"}},
                answer=JobReport,
                status=202,
                problems=("idempotency_conflict", "account_mismatch"),
                takes_key=True,
                for_accounts=True,
            ),
            Call(
                method="GET",
                path=f"{self._path}/{{{self._kind.value}_id}}",
                summary=f"Get a {noun} and its progress",
                scope=CallScope.READ,
                handler=self.show,
                answer=JobReport,
            ),
        ]

    async def start(self, asked: CallRequest[Nothing, JobOrder]) -> Answered:
        which, account = chosen(asked.body.filter), asked.account
        if account is not None:
            if which.filter.account not in (None, account):
                raise AccountMismatch("/filter/account")
            await self._check_theirs(which, account)
            which = which.within(account)
        if asked.body.dry_run:
            tried = await self._admin.try_job(self._kind, which, account=account)
            return Answered(queries.job_report(tried, shown=self._clock.shown, dry_run=True), {})
        key = asked.idempotency_key
        job = await self._admin.start_job(self._kind, which, account=account, idempotency_key=key)
        report = queries.job_report(job, shown=self._clock.shown)
        return Answered(report, {"location": f"{self._path}/{report.id}"})

    async def _check_theirs(self, which: Chosen, account: str) -> None:
        """Raise unless everything that is named belongs to the account: another account's things count as not there."""
        if which.filter.endpoint_id is not None:
            endpoint = await queries.endpoint(self._store, which.filter.endpoint_id)
            if endpoint.account != account:
                raise NotFound("endpoint", ids.show("endpoint", endpoint.id))
        for id in which.ids:
            delivery = await queries.delivery(self._store, id)
            if delivery.account != account:
                raise NotFound("delivery", ids.show("delivery", id))

    async def show(self, asked: CallRequest[Nothing, None]) -> JobReport:
        id = JobId(asked.id(self._kind.value))
        found = await queries.job(self._store, id, self._kind)
        return queries.job_report(found, shown=self._clock.shown)

    async def list_jobs(self, asked: CallRequest[Paged, None]) -> Page[JobReport]:
        after, limit = self._pages.after(asked), asked.query.limit
        found = await self._store.list_jobs(
            self._kind,
            account=asked.account,
            after=None if after is None else JobId(after),
            limit=limit + 1,
        )
        shown = [queries.job_report(job, shown=self._clock.shown) for job in found[:limit]]
        return self._pages.page(asked, found, id=lambda row: row.id, shown=shown)
