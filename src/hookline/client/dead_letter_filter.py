"""The fields of a filter of dead letters.

Their types are for type checkers and editors: the server checks the values, and refuses invalid ones by name.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from hookline.client.words import Reason


class DeadLetterFilter(TypedDict, total=False):
    """Chooses dead letters: those that match, or those with these ids. It has at least one field."""

    account: str
    endpoint_id: str
    event_type: str
    reason: Reason | str
    since: datetime  # when they died
    until: datetime
    ids: Sequence[str]
