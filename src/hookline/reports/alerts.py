"""Shows alerts."""

from collections.abc import Callable

from hookline import ids, rfc3339
from hookline.model import Alert
from hookline.reports.views import AlertReport


def alert_report(alert: Alert, *, shown: Callable[[float], float]) -> AlertReport:
    """An alert as the API shows it."""
    endpoint, end = alert.endpoint_id, alert.resolved_at
    return AlertReport(
        id=ids.show("alert", alert.id),
        kind=alert.kind.value,
        account=alert.account,
        endpoint_id=None if endpoint is None else ids.show("endpoint", endpoint),
        state="firing" if end is None else "resolved",
        since=rfc3339.show(shown(alert.since)),
        resolved_at=None if end is None else rfc3339.show(shown(end)),
        value=alert.value,
        threshold=alert.threshold,
        message=alert.message,
    )
