"""Lists the pages."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from hookline.app import Hookline
from hookline.dashboard.page import PageRoute
from hookline.dashboard.pages.dead_letters.bulk_confirm import ConfirmPages
from hookline.dashboard.pages.dead_letters.bulk_jobs import JobPages
from hookline.dashboard.pages.dead_letters.dead_letters import DeadLetterPages
from hookline.dashboard.pages.deliveries.deliveries import DeliveriesPages
from hookline.dashboard.pages.deliveries.delivery import DeliveryPages
from hookline.dashboard.pages.endpoints.endpoint import EndpointPages
from hookline.dashboard.pages.endpoints.endpoint_settings import EndpointSettingsPages
from hookline.dashboard.pages.endpoints.endpoints import EndpointsPages
from hookline.dashboard.pages.endpoints.new_endpoint import NewEndpointPages
from hookline.dashboard.pages.events import EventPages
from hookline.dashboard.pages.find import FindPages
from hookline.dashboard.pages.outbox import OutboxPages
from hookline.dashboard.pages.overview import OverviewPages
from hookline.dashboard.pages.publishing import PublishPages
from hookline.dashboard.pages.reference.accounts import AccountPages
from hookline.dashboard.pages.reference.audit import AuditPages
from hookline.dashboard.pages.reference.event_types import EventTypePages
from hookline.dashboard.pages.reference.keys import KeyPages
from hookline.dashboard.pages.reference.settings import SettingPages
from hookline.dashboard.pages.reference.workers import WorkerPages


class PageClass(Protocol):
    """A class of pages. What changes on them by itself is in `live` or `live_of` (of one thing, by its id), if it has them."""

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""


def all_pages(hookline: Hookline, sources: Mapping[str, str]) -> list[PageClass]:
    """Every page; the first whose path matches answers, so fixed paths come before those with parts."""
    return [
        OverviewPages(hookline),
        EndpointsPages(hookline),
        NewEndpointPages(hookline),
        EndpointSettingsPages(hookline),
        EndpointPages(hookline),
        DeliveriesPages(hookline),
        DeliveryPages(hookline),
        DeadLetterPages(hookline),
        ConfirmPages(hookline),
        JobPages(),
        OutboxPages(),
        PublishPages(hookline),
        EventPages(hookline),
        EventTypePages(),
        AccountPages(hookline),
        KeyPages(hookline),
        WorkerPages(),
        AuditPages(),
        SettingPages(hookline, sources),
        FindPages(hookline),
    ]
