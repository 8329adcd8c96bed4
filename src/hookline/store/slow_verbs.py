"""Measures how long the verbs of a store take."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from hookline.store.contract import Store

T = TypeVar("T")
Verb = Callable[..., Awaitable[Any]]

ENDLESS = frozenset({"migrate", "open", "close", "listen"})  # they wait for others


def noting_slow_verbs(store: type[T]) -> type[T]:
    """Measure every verb of the store; `slow_verbs` is its record."""
    for name, _ in inspect.getmembers(Store, inspect.iscoroutinefunction):
        if name not in ENDLESS:
            setattr(store, name, _measured(name, getattr(store, name)))
    return store


def _measured(name: str, verb: Verb) -> Verb:
    @wraps(verb)
    async def measured(self: Any, /, *given: Any, **named: Any) -> Any:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            return await verb(self, *given, **named)
        finally:
            ended = clock()
            if ended - began >= self.slow_verbs.limit:
                self.slow_verbs.note(name, ended - began, at=ended)

    return measured
