"""Cuts a worker off from its database without root.

Workers reach PostgreSQL through this proxy. Bytes pass, or stand still on connections that stay open, as in a network
that drops packets. It runs on a loop of its own in a thread, which nothing else shares.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

CHUNK = 1 << 16


class Proxy:
    """Listens on a free port of loopback, and forwards to `target`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._flow = asyncio.Event()
        self._flow.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._forgotten = 0  # connections of an earlier generation never pass anything again
        self._refuses = False
        self._delay = 0.0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._do(self._listen())

    def cut(self, *, resets: bool) -> None:
        """Let nothing pass from now on; with `resets`, connections break and new ones are refused."""
        self._do(self._cut(resets))

    def heal(self, *, forgets: bool) -> None:
        """Let new connections pass, and the old ones too, unless the network has forgotten them."""
        self._do(self._heal(forgets))

    def slow(self, seconds: float) -> None:
        """Delay everything from now on by this long, each way."""
        self._delay = seconds

    def aim(self, target: int) -> None:
        """Send connections to this port from now on; existing ones break."""
        self._target = target
        self._do(self._cut(True))
        self._do(self._heal(False))

    def close(self) -> None:
        """End everything."""
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=256)
        return int(self._server.sockets[0].getsockname()[1])

    async def _cut(self, resets: bool) -> None:
        self._flow.clear()
        self._refuses = resets
        if resets:
            for writer in list(self._writers):
                writer.transport.abort()

    async def _heal(self, forgets: bool) -> None:
        self._forgotten += forgets
        self._refuses = False
        self._flow.set()

    async def _close(self) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            if self._refuses:
                writer.transport.abort()
                return
            generation = self._forgotten
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back)
            try:
                await asyncio.gather(
                    self._pass_on(reader, back, generation), self._pass_on(there, writer, generation)
                )
            finally:
                self._writers.discard(back)
                back.transport.abort()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass_on(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, generation: int
    ) -> None:
        while chunk := await source.read(CHUNK):
            await self._flow.wait()
            if generation < self._forgotten:
                continue  # read, so that the other end notices nothing
            if self._delay:
                await asyncio.sleep(self._delay)  # one packet after the other, as on a slow line
            sink.write(chunk)
            await sink.drain()
        with contextlib.suppress(OSError):
            sink.transport.abort()
