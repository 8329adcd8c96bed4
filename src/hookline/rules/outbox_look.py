"""Decides how the next LOOK reads an outbox: by number, or a few rows of each account.

By number while LOOK comes back short. Behind a backlog of one account all others would wait, so once it is full the
accounts take turns. If they have few rows in all, the backlog is one account's: then some LOOKs by number follow, or it
would move five rows at a time.
"""

import msgspec

BY_NUMBER = 4  # full LOOKs after a short fair one: 59 to 102 % of what one account can have, on SQLite


class LookPlan(msgspec.Struct, frozen=True):
    """How the next LOOK reads."""

    is_fair: bool = False
    after: str = ""  # the account whose turn was last
    left: int = 0  # LOOKs by number before the next fair one


def following(plan: LookPlan, *, rows: int, most: int, is_full: bool, last_account: str = "") -> LookPlan:
    """The plan after a LOOK that found so many rows, of `most` possible ones."""
    if plan.is_fair:
        if rows >= most:
            return LookPlan(True, last_account)
        return LookPlan(False, last_account, BY_NUMBER)
    if not is_full:
        return LookPlan(False, plan.after)
    if plan.left > 1:
        return LookPlan(False, plan.after, plan.left - 1)
    return LookPlan(True, plan.after)
