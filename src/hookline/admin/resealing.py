"""How are all secrets of a database sealed, or stored plain again, at once?

One endpoint after another, each in a transaction of its own, beside servers that go on working.
"""

from collections.abc import Callable

import msgspec
import structlog

from hookline import ids
from hookline.crypto.sealing import Sealer
from hookline.errors import ConfigError, Invalid, Overloaded, SealGarbled
from hookline.model import Endpoint
from hookline.store.contract import Store
from hookline.validate.endpoint_fields import (
    later_than,
    written_whole,
)

_TRIES = 10  # against others who change the same endpoint at the same moment

log = structlog.get_logger()


async def seal_all(store: Store, sealer: Sealer) -> int:
    """Seal every secret with the first key; how many endpoints had to be written."""
    if not sealer.seals:
        raise ConfigError("HOOKLINE_SECRET_KEY is not set: there is nothing to seal with.")
    mark = await store.mark_sealed(sealer.mark())
    await store.mark_sealed(sealer.renewed_mark(mark), was=mark)
    return await _rewrite_all(store, sealer.sealed)


async def unseal_all(store: Store, sealer: Sealer) -> int:
    """Store every secret plain; how many endpoints had to be written."""
    if not sealer.seals:
        raise ConfigError("HOOKLINE_SECRET_KEY is not set: there is nothing to open secrets with.")
    mark = await store.mark_sealed(sealer.mark())
    sealer.renewed_mark(mark)  # refuses a wrong key
    written = await _rewrite_all(store, sealer.plain)
    await store.mark_sealed("", was=mark)  # from now on any key will do
    return written


async def _rewrite_all(store: Store, rewritten: Callable[[Endpoint], Endpoint]) -> int:
    now = (await store.pulse(seen=0)).now
    written = 0
    for endpoint in (await store.catalogue()).endpoints:
        try:
            written += await _rewrite(store, endpoint, rewritten, now=now)
        except (Invalid, SealGarbled) as error:  # it spoils itself alone
            log.warning("secret.left", endpoint_id=ids.show("endpoint", endpoint.id), error=str(error))
    return written


async def _rewrite(
    store: Store, endpoint: Endpoint, rewritten: Callable[[Endpoint], Endpoint], *, now: float
) -> bool:
    for _ in range(_TRIES):
        changed = rewritten(endpoint)
        if changed == endpoint:
            return False
        changed = written_whole(changed, given=())
        changed = msgspec.structs.replace(changed, updated_at=later_than(endpoint, now))
        if await store.update_endpoint(changed, was=endpoint.updated_at, now=now):
            return True
        found = await store.endpoints_by_id([endpoint.id])
        if not found:
            return False
        [endpoint] = found
    raise Overloaded("An endpoint is being changed by others all the time.")
