"""Reads which deliveries a page shows from its address, and writes such addresses."""

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

import msgspec

from hookline import rfc3339
from hookline.dashboard.look import words

STATES = ("waiting", "retrying", "sending", "delivered", "dead", "cancelled")
CREATED = {"1h": 3_600.0, "24h": 86_400.0, "7d": 604_800.0}
CREATED_WORDS = {"1h": "the last hour", "24h": "the last 24 hours", "7d": "the last 7 days"}
_PENDING = ("waiting", "retrying", "sending")  # the API knows them as one state
_SUBJECTS = {
    "": "Deliveries",
    "pending": "Deliveries that wait",
    "waiting": "Deliveries that wait for their first attempt",
    "retrying": "Deliveries to be retried",
    "sending": "Deliveries being sent",
    "delivered": "Deliveries that arrived",
    "dead": "Dead deliveries",
    "cancelled": "Cancelled deliveries",
}
_LOCAL = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2})?)?")

Created = Literal["", "1h", "24h", "7d", "custom"]


class ChosenDeliveries(msgspec.Struct, frozen=True, kw_only=True):
    """What a person chose; empty: all."""

    state: str = ""
    endpoint_id: str = ""  # or what they typed of a URL
    event_type: str = ""
    account: str = ""
    event_id: str = ""
    created: str = ""
    since: str = ""
    until: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str], *, account: str | None) -> "ChosenDeliveries":
        """The filter in an address. Who is bound to an account chooses none."""
        given = {name: query.get(name, "").strip() for name in cls.__struct_fields__}
        if account is not None:
            given["account"] = ""
        if given["created"] not in ("", "custom", *CREATED):
            given["created"] = ""
        if not given["created"] and (given["since"] or given["until"]):
            given["created"] = "custom"
        if given["created"] in CREATED:
            given["until"] = ""
            if not given["cursor"]:
                given["since"] = ""  # it moves with the clock; only further pages keep it
        return cls(**given)

    @property
    def is_all(self) -> bool:
        """Whether nothing is chosen but a state."""
        return not any(
            (self.endpoint_id, self.event_type, self.account, self.event_id, self.created)
        )  # since and until are only with `created`

    def url(self, **changes: str) -> str:
        """The address of the first page with this filter, changed in some parts."""
        given = {**msgspec.structs.asdict(self), "cursor": "", **changes}
        if given["created"] in ("", *CREATED) and not given["cursor"]:
            given["since"] = given["until"] = ""
        text = urlencode({name: value for name, value in given.items() if value})
        return f"/deliveries?{text}" if text else "/deliveries"

    def dead_url(self) -> str:
        """Where its dead ones are: among the dead letters, if these can be chosen in the same way."""
        if self.event_id or self.created:
            return self.url(state="dead")
        chosen = {"endpoint_id": self.endpoint_id, "event_type": self.event_type, "account": self.account}
        text = urlencode({name: value for name, value in chosen.items() if value})
        return f"/dead-letters?{text}" if text else "/dead-letters"

    def parameters(self, *, endpoint_id: str, now: float) -> dict[str, str]:
        """The parameters of the API's list."""
        since, until = _moment(self.since), _moment(self.until)
        if self.created in CREATED and not since:
            since = rfc3339.show(now - CREATED[self.created])
        return {
            "state": "pending" if self.state in _PENDING else self.state,
            "account": self.account,
            "endpoint_id": endpoint_id,
            "event_id": self.event_id,
            "event_type": self.event_type,
            "since": since,
            "until": until,
            "cursor": self.cursor,
        }

    def keeps(self, delivery: Any) -> bool:
        """Whether a delivery that the API found is in the state that was chosen."""
        match self.state:
            case "waiting":
                return not delivery.attempts
            case "retrying":
                return bool(delivery.attempts)
            case "sending":
                return bool(delivery.in_flight)
            case _:
                return True

    @property
    def is_part_of_pending(self) -> bool:
        """Whether the API finds more than was chosen."""
        return self.state in _PENDING

    def sentence(self, *, url: str, is_tenant: bool) -> str:
        """What is shown: `Deliveries to be retried of order.paid, of the last hour`."""
        parts = [_SUBJECTS.get(self.state, "Deliveries")]
        if not self.state:
            parts = ["Your deliveries" if is_tenant else "All deliveries" if self.is_all else "Deliveries"]
        if self.event_type:
            parts.append(f"of {self.event_type}")
        if self.event_id:
            parts.append(f"of event {words.short_id(self.event_id)}")
        if url:
            parts.append(f"to {words.short_url(url)}")
        if self.account:
            parts.append(f"for account {self.account}")
        if self.created in CREATED:
            parts.append(f"of {CREATED_WORDS[self.created]}")
        elif self.created:
            parts.append("of a chosen time")
        return " ".join(parts)


def _moment(text: str) -> str:
    """A moment as the API takes it; a time without a zone is in UTC, as the page says."""
    local = _LOCAL.fullmatch(text)
    if local is None:
        return text
    return f"{local[1]}T{local[2] or '00:00'}{local[3] or ':00'}Z"
