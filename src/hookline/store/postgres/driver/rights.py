"""Checks the database rights that a running process must not lose.

Without them an event cannot be accepted, or an accepted event cannot be delivered. The tables can still be read without
them, so otherwise only the next publish would notice.
"""

from collections.abc import Sequence

from hookline.store.postgres.driver.faults import RIGHTS_STEP

NEEDED = (
    ("attempts", "SELECT, INSERT"),
    ("change_counter", "SELECT"),
    ("changes", "SELECT"),
    ("deliveries", "SELECT, INSERT, UPDATE"),
    ("endpoints", "SELECT"),
    ("events", "SELECT, INSERT"),
    ("idempotency", "SELECT, INSERT"),
    ("lanes", "SELECT, UPDATE"),
    ("workers", "SELECT, INSERT, UPDATE, DELETE"),
)
_PAIRS = [(table, right) for table, rights in NEEDED for right in rights.split(", ")]
NOT_ASKED = (None, None)
VALUES = ([table for table, _ in _PAIRS], [right for _, right in _PAIRS])


def lacking(*, first: int) -> str:
    """A statement that finds the missing rights; `VALUES` (or NOT_ASKED) are bound from the parameter `first` on.

    By name, which the server finds in its cache: a search of its catalogue would read all tables of all schemas.
    """
    return f"""
SELECT right_ || ' on ' || name FROM unnest(${first}::text[], ${first + 1}::text[]) AS needed (name, right_)
WHERE NOT has_table_privilege(name, right_)"""


def refusal(lacking: Sequence[str]) -> str:
    """The message about the missing rights; empty if none is missing."""
    return f"PostgreSQL refuses: the user lacks {', '.join(lacking)}; {RIGHTS_STEP}." if lacking else ""
