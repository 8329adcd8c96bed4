"""Gives each verb of the PostgreSQL store the sessions that it runs in.

Each kind of work has sessions of its own, so that a settle never waits behind a list. What has none of its own, such as
the API's reads and operators' writes, shares the general ones. A verb that is one transaction there is a method whose
second argument is its connection, under the decorator `in_transaction`.
"""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from hookline.store.contract.slow_verbs import SlowVerbs
from hookline.store.postgres.driver import session
from hookline.store.postgres.driver.pool import Connection, SessionPool
from hookline.store.postgres.driver.presence import SessionPresence

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="PostgresSessions")

CALL_TIMEOUT = 8.0  # above the server's own limits, below the 10 s after which nothing may hang
PATIENCE = 1.5  # seconds that an API call waits for a session; 2 s with the time to refuse it
PATIENCE_IN_ALL = 2.5  # for all of its sessions together: it reads from several, one after the other
LOAD_SESSIONS = 2  # large payloads are read beside the loader
GENERAL_SESSIONS = 3  # for the API's reads and operators' writes
LIST_SESSIONS = 2
COUNT_TIMEOUT = 65.0  # likewise above the server's limit (session.COUNTS): counting many millions takes long


class PostgresSessions:
    """The sessions of one process, by their work.

    `unsafe` accepts a server that does not flush its commits: to show what is lost then, never for production.
    """

    def __init__(
        self,
        url: str,
        *,
        call_timeout: float = CALL_TIMEOUT,
        patience: float = PATIENCE,
        patience_in_all: float = PATIENCE_IN_ALL,
        unsafe: bool = False,
    ) -> None:
        self._url = url
        self._unsafe = unsafe
        self.slow_verbs = SlowVerbs()

        def pool(
            role: str,
            settings: dict[str, str],
            *,
            size: int = 1,
            timeout: float = call_timeout,
            patience: float | None = None,
            lists: bool = False,
            is_lazy: bool = False,
        ) -> SessionPool:
            connect = partial(
                session.connect, url, role=role, settings=settings, unsafe=unsafe or is_lazy, lists=lists
            )
            return SessionPool(
                connect,
                role=role,
                size=size,
                call_timeout=timeout,
                patience=patience,
                patience_in_all=patience_in_all,
            )

        self._listener = partial(session.connect, url, role="listen", settings=session.GENERAL, unsafe=unsafe)
        self._accept = pool("accept", session.HOT, lists=True)
        self._settle = pool("settle", session.HOT, lists=True)
        self._lanes = pool("lanes", session.HOT)
        self._loads = pool("load", session.HOT, size=LOAD_SESSIONS, lists=True)
        self._pulse = pool("pulse", session.HOT)
        self._session = SessionPresence()
        self._general = pool("general", session.GENERAL, size=GENERAL_SESSIONS, patience=patience)
        self._lists = pool("lists", session.LISTS, size=LIST_SESSIONS, patience=patience)
        self._prune = pool("prune", session.HOT)
        self._figures = pool("figures", session.COUNTS, timeout=COUNT_TIMEOUT)
        self._tasks = pool("tasks", session.TASKS, timeout=COUNT_TIMEOUT)
        # Apart: a batch is dropped while the next one is read.
        self._looks_at_outbox = pool("outbox look", session.HOT)
        # A row whose DROP got lost is moved again, and dropped: the note that it is clear would not have got lost.
        self._drops_from_outbox = pool("outbox drop", session.LAZY, is_lazy=True)
        self._pools = (
            self._accept,
            self._settle,
            self._lanes,
            self._loads,
            self._pulse,
            self._general,
            self._lists,
            self._prune,
            self._figures,
            self._tasks,
            self._looks_at_outbox,
            self._drops_from_outbox,
        )


def in_transaction(
    work: Callable[Concatenate[S, Connection, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A verb of several statements in one transaction; it may be run again, so it changes only the database."""

    @wraps(work)
    async def verb(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await self._general.transaction(lambda connection: work(self, connection, *given, **named))

    return verb
