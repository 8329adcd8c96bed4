"""Which calls does the API answer?"""

from hookline.api.accounts import AccountCalls
from hookline.api.calls import Pages
from hookline.api.conservation import ConservationCalls
from hookline.api.cursor import Cursors
from hookline.api.dead_letters import DeadLetterCalls
from hookline.api.deliveries import DeliveryCalls
from hookline.api.docs import DocCalls
from hookline.api.endpoints import EndpointCalls
from hookline.api.event_types import EventTypeCalls
from hookline.api.events import EventCalls
from hookline.api.jobs import JobCalls
from hookline.api.keys import KeyCalls
from hookline.api.metrics import MetricCalls
from hookline.api.probes import ProbeCalls
from hookline.api.secrets import SecretCalls
from hookline.api.table import Call
from hookline.api.trials import TrialCalls
from hookline.api.workers import WorkerCalls
from hookline.app import Hookline
from hookline.reports import Reports
from hookline.store.contract import JobKind


def table(hookline: Hookline) -> list[Call]:
    """All calls, by what they are about."""
    shown = Reports(
        hookline.store,
        hookline.worker.standing,
        shown=hookline.clock.shown,
        default_retry=hookline.settings.retry,
    )
    pages = Pages(Cursors(hookline.secret))
    deliveries = DeliveryCalls(hookline, shown, pages)
    nouns = (
        EventCalls(hookline, pages, deliveries),
        EndpointCalls(hookline, shown, pages),
        SecretCalls(hookline),
        TrialCalls(hookline),
        EventTypeCalls(hookline, pages),
        AccountCalls(hookline),
        deliveries,
        DeadLetterCalls(hookline, deliveries),
        JobCalls(hookline, pages, kind=JobKind.REPLAY),
        JobCalls(hookline, pages, kind=JobKind.DISCARD),
        KeyCalls(hookline, pages),
        WorkerCalls(hookline, pages),
        ConservationCalls(hookline),
        ProbeCalls(hookline),
        MetricCalls(hookline),
    )
    calls = [call for noun in nouns for call in noun.table()]
    return [*calls, *DocCalls(hookline.settings, calls).table()]
