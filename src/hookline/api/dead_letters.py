"""How are dead letters listed, replayed and discarded over HTTP, one by one and in bulk?"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hookline import ids, reports
from hookline.api import calls
from hookline.api.calls import Pages
from hookline.api.deliveries import DeliveryCalls
from hookline.app import Hookline
from hookline.dead_letters import chosen
from hookline.errors import Invalid
from hookline.model import EndpointId, JobId, State
from hookline.names import check_known
from hookline.store.contract import DeliveryFilter, JobKind


class DeadLetterCalls:
    """The calls under `/v1/dead-letters`."""

    def __init__(self, hookline: Hookline, deliveries: DeliveryCalls) -> None:
        self._desk = hookline.desk
        self._deliveries = deliveries

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            calls.route("/v1/dead-letters", GET=self.list_dead_letters),
            calls.route("/v1/dead-letters/{id}/replay", POST=self.replay),
            calls.route("/v1/dead-letters/{id}/discard", POST=self.discard),
        ]

    async def list_dead_letters(self, request: Request) -> Response:
        names = ("account", "endpoint_id", "event_type", "reason", "since", "until", "replayed")
        query = calls.query(request, *names, *calls.PAGE)
        endpoint_id = query.id("endpoint_id", "endpoint")
        is_replayed = query.flag("replayed") or False
        filter = DeliveryFilter(
            state=None if is_replayed else State.DEAD,
            is_replayed=is_replayed,
            account=query.account(),
            endpoint_id=None if endpoint_id is None else EndpointId(endpoint_id),
            event_type=query.event_type(),
            reason=query.reason(),
            died_since=query.moment("since"),
            died_until=query.moment("until"),
        )
        return await self._deliveries.page(filter, query, of="dead-letters")

    async def replay(self, request: Request) -> Response:
        await calls.read_optional(request)
        id = calls.delivery_id(request)
        await self._desk.replay_dead(id)
        return calls.json(await self._deliveries.report(id), status=202)

    async def discard(self, request: Request) -> Response:
        await calls.read_optional(request)
        id = calls.delivery_id(request)
        await self._desk.discard(id)
        return calls.json(await self._deliveries.report(id))


class JobCalls:
    """The calls under `/v1/replays` or `/v1/discards`."""

    def __init__(self, hookline: Hookline, pages: Pages, *, kind: JobKind) -> None:
        self._desk = hookline.desk
        self._store = hookline.store
        self._pages = pages
        self._kind = kind
        self._path = f"{kind.value}s"

    def table(self) -> list[Route]:
        """Paths and methods."""
        return [
            calls.route(f"/v1/{self._path}", GET=self.list_jobs, POST=self.start),
            calls.route(f"/v1/{self._path}/{{id}}", GET=self.show),
        ]

    async def start(self, request: Request) -> Response:
        key = calls.idempotency_key(request)
        fields = await calls.read_json(request)
        check_known(fields, ("filter", "dry_run"))
        dry_run = fields.get("dry_run")
        if dry_run is not None and not isinstance(dry_run, bool):
            raise Invalid("dry_run is true or false.", pointer="/dry_run")
        which = chosen(fields.get("filter"))
        if dry_run:
            tried = await self._desk.try_job(self._kind, which)
            return calls.json(reports.job_report(tried, dry_run=True), status=202)
        report = reports.job_report(await self._desk.start_job(self._kind, which, idempotency_key=key))
        return calls.json(report, status=202, headers={"location": f"/v1/{self._path}/{report.id}"})

    async def show(self, request: Request) -> Response:
        calls.query(request)
        id = JobId(ids.read(self._kind.value, request.path_params["id"]))
        return calls.json(reports.job_report(await reports.job(self._store, id, self._kind)))

    async def list_jobs(self, request: Request) -> Response:
        query = calls.query(request, *calls.PAGE)
        after, limit = self._pages.after(query, of=self._path), query.limit()
        found = await self._store.list_jobs(
            self._kind, after=None if after is None else JobId(after), limit=limit + 1
        )
        shown = [reports.job_report(job) for job in found[:limit]]
        return self._pages.answer(found, query, of=self._path, id=lambda row: row.id, shown=shown)
