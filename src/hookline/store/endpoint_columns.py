"""Lists the columns of an endpoint, which are the same in both stores.

Their statements and rows follow this list.
"""

from enum import Enum, auto


class Form(Enum):
    """What kind of value a column holds; each store keeps it in its own way."""

    PLAIN = auto()
    TEXT = auto()  # for people: may hold what a database cannot
    WORD = auto()  # a member of an enum
    FLAG = auto()
    TIME = auto()
    LIST = auto()  # of texts
    JSON = auto()


COLUMNS = {
    "id": Form.PLAIN,
    "account": Form.PLAIN,
    "url": Form.PLAIN,
    "events": Form.LIST,
    "secret": Form.PLAIN,
    "signing": Form.WORD,
    "description": Form.TEXT,
    "enabled": Form.FLAG,
    "disabled_reason": Form.TEXT,
    "headers": Form.JSON,
    "metadata": Form.JSON,
    "timeout": Form.PLAIN,
    "max_in_flight": Form.PLAIN,
    "created_at": Form.TIME,
    "updated_at": Form.TIME,
    "max_redirects": Form.PLAIN,
    "paused": Form.FLAG,
    "ordering": Form.WORD,
    "rate_limit": Form.JSON,
    "retry": Form.JSON,
    "retry_statuses": Form.JSON,
    "circuit": Form.JSON,
    "old_secret": Form.PLAIN,
    "old_secret_until": Form.TIME,
    "filter": Form.PLAIN,
    "signature": Form.WORD,
    "client_certificate": Form.JSON,
}


def columns_of(*forms: Form) -> tuple[str, ...]:
    """The columns that hold values of these kinds."""
    return tuple(name for name, form in COLUMNS.items() if form in forms)
