"""Shows rows of outboxes that were refused."""

import base64
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from hookline import ids, rfc3339
from hookline.reports.views import EventText, Moment
from hookline.store.contract.outbox import RefusedRow


class RefusedRowReport(msgspec.Struct, kw_only=True):
    """A row of an outbox that was refused. Its text is what the application wrote, and can break every rule."""

    id: EventText  # of its event, if it is accepted after all
    source: str
    account: str
    type: str
    idempotency_key: str | None
    deliver_at: Moment | None
    hops: int
    published_at: Moment
    refused_at: Moment
    code: Annotated[str, msgspec.Meta(description="the code of the problem that a publish would have got")]
    detail: str
    payload: Annotated[Any, msgspec.Meta(description="null in lists, and if it is not JSON")]
    payload_bytes: int
    payload_base64: Annotated[
        str | None, msgspec.Meta(description="the payload if it is not JSON; null in lists")
    ]


def refused_row_report(
    row: RefusedRow, *, shown: Callable[[float], float], is_whole: bool = False
) -> RefusedRowReport:
    """A refused row as the API shows it; `is_whole`: with its payload."""
    payload = row.payload if is_whole else None
    is_json = payload is not None and _is_json(payload)
    return RefusedRowReport(
        id=ids.show("row", row.id),
        source=row.source,
        account=row.account,
        type=row.type,
        idempotency_key=row.idempotency_key,
        deliver_at=_moment(row.deliver_at),
        hops=row.hops,
        published_at=_moment(row.at) or rfc3339.show(0.0),
        refused_at=rfc3339.show(shown(row.refused_at)),
        code=row.code,
        detail=row.detail,
        payload=msgspec.Raw(payload) if payload is not None and is_json else None,
        payload_bytes=row.payload_bytes,
        payload_base64=base64.b64encode(payload).decode() if payload is not None and not is_json else None,
    )


def _is_json(payload: bytes) -> bool:
    """Whether it can be a part of an answer as it is."""
    try:
        msgspec.json.decode(payload)
        payload.decode()
    except (ValueError, RecursionError):
        return False
    return True


def _moment(at: float | None) -> str | None:
    """A time of the application's, whatever it is."""
    return None if at is None or not rfc3339.can_be_shown(at) else rfc3339.show(at)
