"""Decides what a caller can reach with a call.

A caller reaches what its key's scopes allow. A key that is bound to an account reaches only that account's things, and
cannot tell another account's things from those that do not exist. This is decided here for every call, by what the
table of calls says about it: ids in the path are looked up, and an `account` in the path, the parameters or the fields
must be the key's own. A call that names no account in any of these ways is refused to such keys, unless its handler
says that it respects the account by itself (`for_accounts`).
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from hookline import ids, model
from hookline.admin.key_cache import Caller
from hookline.api.auth import require
from hookline.api.call import Call, CallScope, names_account
from hookline.api.problem import Refused
from hookline.errors import AccountMismatch, NotFound
from hookline.model import DeliveryId, EndpointId, EventId, JobId
from hookline.store.contract import RefusedFilter, Store

_ID = re.compile(r"\{([a-z]+)_id\}")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class Reach:
    """Refuses callers that reach too far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners = {
            "endpoint": self._owner_of_endpoint,
            "event": self._owner_of_event,
            "delivery": self._owner_of_delivery,
            "row": self._owner_of_row,
            "replay": self._owner_of_job,
            "discard": self._owner_of_job,
        }

    async def check(self, call: Call, path: Mapping[str, str], caller: Caller) -> None:
        """Raise unless the caller may make this call with the ids in its path."""
        if call.scope is not CallScope.OPEN:
            is_bound = caller.account is not None and call.scope_of_accounts is not None
            needed = call.scope_of_accounts if is_bound and call.scope_of_accounts else call.scope
            require(caller, model.Scope(needed.value))
        if caller.account is None or call.scope is CallScope.OPEN:
            return
        nouns = [noun for noun in _ID.findall(call.path) if noun in self._owners]
        if not _is_for_accounts(call, nouns):
            raise Refused("forbidden", "This key is bound to an account, and this call is about all of them.")
        if path.get("account", caller.account) != caller.account:
            raise AccountMismatch("account")
        for noun in nouns:
            text = path[f"{noun}_id"]
            if await self._owners[noun](ids.read(noun, text)) != caller.account:
                raise NotFound(noun, text)

    async def _owner_of_endpoint(self, id: bytes) -> str | None:
        found = await self._store.endpoints_by_id([EndpointId(id)])
        return found[0].account if found else None

    async def _owner_of_event(self, id: bytes) -> str | None:
        found = await self._store.event(EventId(id))
        return None if found is None else found.account

    async def _owner_of_delivery(self, id: bytes) -> str | None:
        found = await self._store.delivery(DeliveryId(id))
        return None if found is None else found.account

    async def _owner_of_row(self, id: bytes) -> str | None:
        found = await self._store.refused_rows(RefusedFilter(id=EventId(id)), after=None, limit=1)
        return found[0].account if found else None

    async def _owner_of_job(self, id: bytes) -> str | None:
        found = await self._store.job(JobId(id))
        return None if found is None else found.account


def narrowed(query: _Struct, filters: dict[str, str], account: str | None) -> tuple[_Struct, dict[str, str]]:
    """The parameters, limited to the account that the caller is bound to."""
    if account is None or "account" not in query.__struct_fields__:
        return query, filters
    if getattr(query, "account", None) not in (None, account):
        raise AccountMismatch("account")
    return msgspec.structs.replace(query, account=account), {**filters, "account": account}


def filled(
    fields: dict[str, Any], kind: type[msgspec.Struct], account: str | None, *, is_patch: bool
) -> dict[str, Any]:
    """The body's fields, with the account that the caller is bound to filled in."""
    if account is None or "account" not in kind.__struct_fields__:
        return fields
    given = fields.get("account")
    if isinstance(given, str) and given != account:
        raise AccountMismatch("/account")
    return fields if is_patch or given is not None else {**fields, "account": account}


def _is_for_accounts(call: Call, nouns: list[str]) -> bool:
    if call.for_accounts is not None:
        return call.for_accounts
    return bool(nouns) or names_account(call)
