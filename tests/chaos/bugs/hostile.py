"""Bugs: strangers' servers get more trust or time than they should."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

from hookline.pipeline.sending import tls_contexts
from hookline.pipeline.sending.connection import Connection
from hookline.pipeline.sending.resolver import Names
from hookline.rules.lookups import LookupResult


def look_up_one_name_at_a_time() -> None:
    """All lookups share one place: whoever hangs in it keeps the others waiting."""
    make = Names.__init__

    def shared(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        self._places = dict.fromkeys(LookupResult, asyncio.Semaphore(1))

    Names.__init__ = shared


def check_no_certificate() -> None:
    """Any certificate of a receiver is good enough."""
    make = tls_contexts.default_context

    def trusting_all() -> ssl.SSLContext:
        context = make()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    tls_contexts.default_context = trusting_all


def start_the_timeout_again_with_each_read() -> None:
    """The timeout is for each read, and not for the whole of an attempt."""
    receive = Connection.data_received

    def extended(self: Any, data: bytes) -> None:
        if self.exchange is not None:
            self.exchange.deadline = self._clock.monotonic() + self.exchange.request.timeout
        receive(self, data)

    Connection.data_received = extended


BUGS: dict[str, Callable[[], None]] = {
    "one-lookup-at-a-time": look_up_one_name_at_a_time,
    "certificates-unchecked": check_no_certificate,
    "timeout-of-each-read": start_the_timeout_again_with_each_read,
}
