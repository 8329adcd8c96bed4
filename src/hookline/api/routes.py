"""Lists the calls that the API answers."""

from hookline.api.call import Call
from hookline.api.calls.access.audit import AuditCalls
from hookline.api.calls.access.portal_links import PortalLinkCalls
from hookline.api.calls.accounts import AccountCalls
from hookline.api.calls.conservation import ConservationCalls
from hookline.api.calls.dead_letters import DeadLetterCalls
from hookline.api.calls.deliveries import DeliveryCalls
from hookline.api.calls.docs import DocCalls
from hookline.api.calls.endpoints import EndpointCalls
from hookline.api.calls.event_types import EventTypeCalls
from hookline.api.calls.events import EventCalls
from hookline.api.calls.ids import IdCalls
from hookline.api.calls.jobs import JobCalls
from hookline.api.calls.keys import KeyCalls
from hookline.api.calls.measuring.alerts import AlertCalls
from hookline.api.calls.measuring.health import HealthCalls
from hookline.api.calls.measuring.metrics import MetricCalls
from hookline.api.calls.measuring.stats import StatsCalls
from hookline.api.calls.measuring.status import StatusCalls
from hookline.api.calls.outbox import OutboxCalls
from hookline.api.calls.probes import ProbeCalls
from hookline.api.calls.secrets import SecretCalls
from hookline.api.calls.test_event import TrialCalls
from hookline.api.calls.workers import WorkerCalls
from hookline.api.cursor import Cursors
from hookline.api.description.document import problems_of
from hookline.api.router import Pages
from hookline.app import Hookline
from hookline.reports.queries import Reports
from hookline.store.contract import JobKind


def table(hookline: Hookline) -> list[Call]:
    """All calls, by subject."""
    shown = Reports(
        hookline.store,
        hookline.owners,
        shown=hookline.clock.shown,
        default_retry=hookline.settings.retry,
    )
    pages = Pages(Cursors(hookline.secret))
    deliveries = DeliveryCalls(hookline, shown, pages)
    nouns = (
        EventCalls(hookline, pages, deliveries),
        EndpointCalls(hookline, shown, pages),
        StatsCalls(hookline),
        SecretCalls(hookline),
        TrialCalls(hookline),
        EventTypeCalls(hookline, pages),
        AccountCalls(hookline),
        PortalLinkCalls(hookline),
        deliveries,
        DeadLetterCalls(hookline, deliveries),
        JobCalls(hookline, pages, kind=JobKind.REPLAY),
        JobCalls(hookline, pages, kind=JobKind.DISCARD),
        KeyCalls(hookline, pages),
        HealthCalls(hookline),
        StatusCalls(hookline),
        AlertCalls(hookline, pages),
        WorkerCalls(hookline, pages),
        AuditCalls(hookline, pages),
        OutboxCalls(hookline, pages),
        IdCalls(hookline),
        ConservationCalls(hookline),
        ProbeCalls(hookline),
    )
    calls = [call for noun in nouns for call in noun.table()]
    publishes = [call for call in calls if call.handler is None]
    calls += MetricCalls(hookline, codes={code for call in publishes for code in problems_of(call)}).table()
    return [*calls, *DocCalls(hookline.settings, calls).table()]
