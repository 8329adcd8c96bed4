"""Finds the ids that begin with what a person typed."""

from hookline import ids
from hookline.errors import Invalid
from hookline.ids import LEAST_PREFIX, MAX_FANOUT, IdPrefix
from hookline.model import EventId
from hookline.store.contract import Store

CANDIDATES = 10  # ids shown for an ambiguous prefix
_EVENTS = 1_000  # of an account, looked through for deliveries

_WITHOUT_ACCOUNT = frozenset({"key", "worker"})


def checked_prefix(text: str) -> IdPrefix:
    """The prefix; raises Invalid if it is too short, or if no id begins like it."""
    prefix = ids.read_prefix(text)
    if prefix is None or prefix.length < LEAST_PREFIX:
        raise Invalid(
            f"The beginning of an id has at least {LEAST_PREFIX} characters after its kind, such as"
            f" {ids.show('endpoint', bytes(16))[: len('ep_') + LEAST_PREFIX]}.",
            pointer="prefix",
            code="invalid_parameter",
        )
    return prefix


async def ids_beginning(store: Store, prefix: IdPrefix, *, account: str | None = None) -> list[str]:
    """The ids that begin with the prefix, up to one more than CANDIDATES; with an account only its own."""
    noun, _, low, high = prefix
    if account is None or noun not in {"delivery", *_WITHOUT_ACCOUNT}:
        found = await store.ids_between(noun, low, high, account=account, limit=CANDIDATES + 1)
    elif noun in _WITHOUT_ACCOUNT:
        found = []
    else:
        found = await _deliveries_of(store, low, high, account=account)
    return [ids.show(noun, id) for id in found]


async def _deliveries_of(store: Store, low: bytes, high: bytes, *, account: str) -> list[bytes]:
    """The deliveries by their events, so that what other accounts published meanwhile is not read."""
    found: list[bytes] = []
    for event in await store.ids_between("event", ids.event_of(low), high, account=account, limit=_EVENTS):
        last = ids.delivery_of(EventId(event), MAX_FANOUT - 1)
        room = CANDIDATES + 1 - len(found)
        found += await store.ids_between("delivery", max(low, event), min(high, last), limit=room)
        if len(found) > CANDIDATES:
            break
    return found
