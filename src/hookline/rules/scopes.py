"""What does a scope allow?

`publish` hands events in and nothing else. `read` sees everything but secrets and keys. `admin` does everything,
so it includes the other two; they do not include each other.
"""

from collections.abc import Collection

from hookline.model import Scope


def allows(held: Collection[Scope], needed: Scope) -> bool:
    """May whoever holds these scopes do what needs this one?"""
    return needed in held or Scope.ADMIN in held
