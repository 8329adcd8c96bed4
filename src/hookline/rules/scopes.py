"""Decides what each scope allows.

`publish` hands events in and nothing else. `read` sees everything except secrets and keys. `admin` does everything, so
it includes the other two. Those do not include each other.
"""

from collections.abc import Collection

from hookline.model import Scope


def allows(held: Collection[Scope], needed: Scope) -> bool:
    """Whether a holder of these scopes may do what needs this one."""
    return needed in held or Scope.ADMIN in held
