"""Answers the clients' calls from within the process, for the program that hookline is embedded in.

A call gets every check that a request from outside gets. Its answer is read as a client reads it, so that the results
of the library are those of the clients.
"""

from typing import TypeVar
from urllib.parse import unquote

import msgspec
from starlette.routing import compile_path

from hookline.admin.audit import PROGRAM
from hookline.admin.key_cache import caller
from hookline.api.inside import AskedBy, InsideApi
from hookline.api.routes import table
from hookline.api.tenancy import Reach
from hookline.app import Hookline
from hookline.client.call import ClientCall
from hookline.errors import NotFound
from hookline.model import Scope

T = TypeVar("T")

_ITSELF = caller(frozenset({Scope.ADMIN}), actor=PROGRAM.actor)
_BY_ITSELF = AskedBy(via=PROGRAM.via)


class ProgramCalls:
    """The calls of the API, with the rights of the program itself: all of them."""

    def __init__(self, hookline: Hookline) -> None:
        calls = table(hookline)
        self._inside = InsideApi(calls, Reach(hookline.store))
        self._paths = [(call, compile_path(call.path)[0]) for call in calls if call.handler is not None]

    async def answer(self, call: ClientCall[T]) -> T:
        """Make a call; raises the errors of `hookline.errors`."""
        path, _, query = call.target.partition("?")
        for known, shape in self._paths:
            if known.method == call.method and (found := shape.match(path)):
                value = await self._inside.answer(
                    known,
                    _ITSELF,
                    parts={name: unquote(part) for name, part in found.groupdict().items()},
                    query=query,
                    content=call.body or b"",
                    headers=call.headers,
                    asked_by=_BY_ITSELF,
                )
                return call.read(b"" if known.answer is None else msgspec.json.encode(value))
        raise NotFound("object", unquote(path.rpartition("/")[2]))
